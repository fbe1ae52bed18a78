//! What a story may want otherwise, and the configuration file that comes of it.

use super::doors::{Clicks, Inbound};
use super::story::{OPERATOR, PREVIOUS_SECRET, WATCH_TOKEN};
use countersign::chat::slack::socket::Timing;
use countersign::net::Limits;
use countersign::sandbox::a2a::{self, Foreign};
use countersign::sandbox::{discord, slack};
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;

/// What a story may want otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Wants {
    /// May a subject that is not the owner answer?
    pub(crate) foreign: Foreign,
    /// Replaces the `[[group]]`, `[[person]]` and `[[route]]` part.
    pub(crate) people_and_routes: &'static str,
    /// More keys of the `[[runtime]]`.
    pub(crate) runtime: &'static str,
    /// Another runtime than the stand-in.
    pub(crate) whole_runtime: Option<String>,
    /// More keys of the `[[slack]]`.
    pub(crate) slack: &'static str,
    /// With a `[[discord]]` named `guild` too.
    pub(crate) discord: bool,
    /// How clicks on Discord arrive.
    pub(crate) clicks: Clicks,
    /// More keys of the `[[discord]]`.
    pub(crate) more_discord: &'static str,
    /// More text before the first section's tables.
    pub(crate) more: &'static str,
    pub(crate) limits: Limits,
    /// How the runtime is spoken to.
    pub(crate) binding: a2a::Binding,
    /// How clicks arrive; a ground with sockets decides it.
    pub(crate) inbound: Inbound,
    /// Times of Socket Mode.
    pub(crate) timing: Timing,
}

pub(crate) const PEOPLE_AND_ROUTES: &str = r#"
[[group]]
name = "release"
subjects = ["dana@example.com", "kim@example.com"]

[[person]]
subject = "dana@example.com"
slack = ["acme:U0DANA"]

[[person]]
subject = "kim@example.com"
slack = ["acme:U0KIM"]

[[person]]
subject = "guest@example.com"
slack = ["acme:U0GUEST"]

[[route]]
when = { runtime = "prod", tool = "delete_*" }
to = ["slack:acme:#releases"]
approvers = ["release"]
approvals = 2

[[route]]
when = { runtime = "prod", tool = "lonely" }
to = ["slack:acme:#releases"]
approvers = []

[[route]]
when = { runtime = "prod", tool = "four_eyes" }
to = ["slack:acme:#releases"]
approvers = ["release"]
self_approval = false

[[route]]
when = { runtime = "prod", tool = "both" }
to = ["slack:acme:#releases", "slack:acme:C0OPS"]
approvers = ["release"]

[[route]]
when = { runtime = "prod" }
to = ["slack:acme:#releases"]
fallback = ["slack:acme:C0OPS"]
approvers = ["release", "owner"]
"#;

impl Default for Wants {
    fn default() -> Self {
        Self {
            foreign: Foreign::Allowed,
            people_and_routes: PEOPLE_AND_ROUTES,
            runtime: "",
            whole_runtime: None,
            slack: "",
            discord: false,
            clicks: Clicks::None,
            more_discord: "",
            more: "",
            limits: Limits { connect: Duration::from_secs(2), total: Duration::from_secs(3) },
            binding: a2a::Binding::JsonRpc,
            inbound: Inbound::Http,
            timing: Timing::default().faster(10),
        }
    }
}

/// The configuration file of a service against these stand-ins; its secrets are in [`env`].
pub(crate) fn config(
    wants: &Wants,
    sandbox: SocketAddr,
    address: SocketAddr,
    database: &str,
    folder: &TempDir,
) -> String {
    let keys = folder.path().join("countersign.key");
    format!(
        r#"
[server]
listen = "{address}"
public_url = "http://{address}"
operator_token = {{ env = "OPERATOR" }}

[signing]
key_file = "{keys}"

[database]
url = "{database}"

{more}

{runtime}

[[slack]]
name = "acme"
bot_token = {{ env = "BOT" }}
{inbound}
api_url = "http://{sandbox}/slack/api"
{slack}

{discord}

{people}
"#,
        keys = keys.display(),
        more = wants.more,
        runtime = wants.whole_runtime.clone().unwrap_or_else(|| stand_in(wants, sandbox)),
        inbound = match wants.inbound {
            Inbound::Http => "signing_secret = { env = \"SIGNING\" }",
            Inbound::Socket => "app_token = { env = \"APP\" }",
        },
        slack = wants.slack,
        discord = if wants.discord { on_discord(sandbox, wants) } else { String::new() },
        people = wants.people_and_routes,
    )
}

/// The install on the Discord stand-in.
fn on_discord(sandbox: SocketAddr, wants: &Wants) -> String {
    let inbound = match wants.clicks {
        Clicks::Endpoint => {
            format!("public_key = \"{}\"", discord::verify_key(&discord::acme::SEED))
        }
        Clicks::None | Clicks::Gateway => "inbound = \"gateway\"".to_owned(),
    };
    format!(
        r#"
[[discord]]
name = "guild"
application_id = "{}"
bot_token = {{ env = "DISCORD" }}
guild_id = "{}"
api_url = "http://{sandbox}/discord/api/v10"
{inbound}
{}
"#,
        discord::acme::APP,
        discord::acme::GUILD,
        wants.more_discord,
    )
}

fn stand_in(wants: &Wants, sandbox: SocketAddr) -> String {
    format!(
        r#"
[[runtime]]
name = "prod"
kind = "a2a"
endpoint = "http://{sandbox}/a2a/release"
token = {{ env = "WATCH" }}
agent = "release"
answer_with = "jwt"
issuer = "https://countersign.test"
audience = "prod-agents"
{}
"#,
        wants.runtime
    )
}

/// The environment of the tests' configuration files.
pub(crate) fn env(name: &str) -> Option<String> {
    Some(
        match name {
            "OPERATOR" => OPERATOR,
            "SDK_KEY" => super::outside::A2aSdkServer::KEY,
            "WATCH" => WATCH_TOKEN,
            "BOT" => slack::acme::BOT_TOKEN,
            "APP" => slack::acme::APP_TOKEN,
            "DISCORD" => discord::acme::TOKEN,
            "SIGNING" => slack::acme::SIGNING_SECRET,
            "PREVIOUS" => PREVIOUS_SECRET,
            "BETA" => slack::acme::BETA_TOKEN,
            "ORG" => slack::acme::ORG_TOKEN,
            _ => return None,
        }
        .to_owned(),
    )
}
