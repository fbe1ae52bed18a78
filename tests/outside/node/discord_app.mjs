// An application made with discord.js, which nobody here wrote, against the Discord stand-in.
//
//   node discord_app.mjs <base address of the interface, without its version> <bot token> <channel>
//
// When it is ready it registers `/judge`, posts a card with two buttons and a select and prints `ready`. `Approve`
// changes the card in place, and then once more, which must be refused as answered already; `Deny…` opens a form whose
// submission edits the card and tells privately; a choice is deferred and then told; `/judge card` posts one more. Answers each line with what it has
// seen so far; ends with its standard input.

import { createInterface } from 'node:readline';
import {
  ActionRowBuilder, ButtonBuilder, ButtonStyle, Client, EmbedBuilder, Events, GatewayIntentBits, MessageFlags,
  ModalBuilder, StringSelectMenuBuilder, TextInputBuilder, TextInputStyle,
} from 'discord.js';

const [api, token, channel] = process.argv.slice(2);
const seen = [];
const quiet = { parse: [] };
const client = new Client({
  intents: [GatewayIntentBits.Guilds, GatewayIntentBits.GuildMessages, GatewayIntentBits.DirectMessages],
  rest: { api, version: '10', retries: 0 },
  allowedMentions: quiet,
});

const button = (id, label, style) => new ButtonBuilder().setCustomId(id).setLabel(label).setStyle(style);
let number = 7;
const card = () => ({
  content: 'Approval: Deploy R&D <eu>?',
  embeds: [new EmbedBuilder().setTitle('Deploy').addFields({ name: 'Where', value: 'eu' })],
  components: [
    new ActionRowBuilder().addComponents(
      button('approve', 'Approve', ButtonStyle.Success), button('deny', 'Deny…', ButtonStyle.Danger),
    ),
    new ActionRowBuilder().addComponents(
      new StringSelectMenuBuilder().setCustomId('pick').setPlaceholder('Pick a plan')
        .addOptions({ label: 'Retry', value: '0' }, { label: 'Skip', value: '1' }),
    ),
  ],
  nonce: String(number), enforceNonce: true,
});
const form = () => new ModalBuilder().setCustomId('why').setTitle('Why not?').addComponents(
  new ActionRowBuilder().addComponents(
    new TextInputBuilder().setCustomId('reason').setLabel('Reason').setStyle(TextInputStyle.Paragraph).setRequired(true),
  ),
);

async function answer(interaction) {
  if (interaction.isChatInputCommand()) {
    seen.push(`command ${interaction.options.getSubcommand()} by ${interaction.user.username}`);
    await interaction.deferReply({ flags: MessageFlags.Ephemeral });
    if (interaction.options.getSubcommand() === 'card') {
      number += 1;
      await interaction.channel.send(card());
    }
    await interaction.editReply({ content: '3 wait for you' });
  } else if (interaction.isStringSelectMenu()) {
    await interaction.deferUpdate();
    await interaction.followUp({ content: `You chose ${interaction.values[0]}`, flags: MessageFlags.Ephemeral });
    seen.push(`chosen ${interaction.values[0]}`);
  } else if (interaction.isModalSubmit()) {
    const reason = interaction.fields.getTextInputValue('reason');
    await interaction.update({ content: `Denied: ${reason}`, embeds: [], components: [] });
    await interaction.followUp({ content: 'Recorded', flags: MessageFlags.Ephemeral });
    seen.push(`reason ${reason}`);
  } else if (interaction.customId === 'deny') {
    await interaction.showModal(form());
    seen.push(`form for ${interaction.user.id}`);
  } else {
    seen.push(`press by ${interaction.user.id} with ${[...interaction.member.roles.cache.keys()].length} roles`);
    await interaction.update({ content: 'Approved', embeds: [], components: [] });
    // Past the library's own guard: the second first response.
    const again = { type: 7, data: { content: 'Approved twice' } };
    const url = `/interactions/${interaction.id}/${interaction.token}/callback`;
    await client.rest.post(url, { body: again, auth: false }).then(
      () => seen.push('answered twice'), (error) => seen.push(`second answer ${error.code}`),
    );
  }
}

client.on(Events.InteractionCreate, (interaction) => {
  answer(interaction).catch((error) => seen.push(`error ${error}`));
});
client.on(Events.ShardResume, () => seen.push('resumed'));
client.on(Events.MessageDelete, (message) => seen.push(`deleted ${message.id}`));
client.on(Events.Error, (error) => seen.push(`error ${error}`));
client.once(Events.ClientReady, async () => {
  try {
    await client.application.commands.set([{
      name: 'judge', description: 'Judges', options: [
        { type: 1, name: 'open', description: 'What waits' }, { type: 1, name: 'card', description: 'One more card' },
      ],
    }]);
    const place = await client.channels.fetch(channel);
    const posted = await place.send(card());
    const again = await place.send(card());
    seen.push(`posted ${posted.id === again.id ? 'once' : 'twice'} in ${place.name}`);
    console.log('ready');
  } catch (error) {
    console.log(`failed ${error}`);
  }
});
client.login(token).catch((error) => console.log(`failed ${error}`));

createInterface({ input: process.stdin })
  .on('line', () => console.log(JSON.stringify(seen)))
  .on('close', () => process.exit(0));
