-- A card's seat in its place. taken: it stands there (or is about to) while its interaction is open. held: it
-- waits for room. lost: the place refused it; it is wanted again when the place takes cards.
ALTER TABLE cards ADD COLUMN slot TEXT CHECK (slot IN ('taken', 'held', 'lost'));
UPDATE cards SET slot = 'taken' WHERE state IN ('live', 'posting', 'frozen')
  AND interaction_id IN (SELECT id FROM interactions WHERE state <> 'settled');
CREATE INDEX cards_slot ON cards (install, channel, slot, created_ms, id) WHERE slot IS NOT NULL;
CREATE INDEX cards_lost ON cards (place) WHERE slot = 'lost';
CREATE INDEX cards_queued ON cards (place, created_ms, id) WHERE state = 'queued';

-- The thread of one A2A context in one place: the card that began it.
CREATE TABLE threads (
  install   TEXT NOT NULL,
  channel   TEXT NOT NULL,
  runtime   TEXT NOT NULL,
  agent     TEXT NOT NULL,
  context   TEXT NOT NULL,
  root_card BLOB NOT NULL,
  PRIMARY KEY (install, channel, runtime, agent, context)
);
CREATE INDEX threads_root ON threads (root_card);

-- Messages of ours that are no cards: that an alert stands, how many wait for room.
CREATE TABLE bulletins (
  id         BLOB PRIMARY KEY,
  topic      TEXT NOT NULL,
  place      TEXT NOT NULL,
  install    TEXT NOT NULL,
  channel    TEXT,
  message    TEXT,
  state      TEXT NOT NULL CHECK (state IN ('queued', 'posting', 'live', 'failed')),
  says_json  TEXT NOT NULL,
  shown_json TEXT,
  shown_ms   BIGINT,
  posting_ms BIGINT,
  looks      BIGINT NOT NULL DEFAULT 0,
  look_ms    BIGINT,
  UNIQUE (topic, place)
);
