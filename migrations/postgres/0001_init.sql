-- Times are epoch milliseconds. Texts named *_json hold JSON. State words are checked here, so that
-- a word nobody knows cannot be stored.

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

-- What each chat install said of itself, newest answer.
CREATE TABLE installs (
  name       TEXT PRIMARY KEY,
  platform   TEXT NOT NULL,
  app_id     TEXT NOT NULL,
  team       TEXT,
  enterprise TEXT,
  bot_user   TEXT NOT NULL,
  seen_ms    BIGINT NOT NULL
);

-- `#name` places, resolved once and pinned by id.
CREATE TABLE pins (
  install   TEXT NOT NULL,
  name      TEXT NOT NULL,
  channel   TEXT NOT NULL,
  pinned_ms BIGINT NOT NULL,
  PRIMARY KEY (install, name)
);

-- Places that refused a card, until they take one again.
CREATE TABLE bad_places (
  place    TEXT PRIMARY KEY,
  code     TEXT NOT NULL,
  since_ms BIGINT NOT NULL
);

-- A2A tasks the operator's programs registered.
CREATE TABLE tasks (
  runtime       TEXT NOT NULL,
  task          TEXT NOT NULL,
  context       TEXT,
  subject       TEXT,
  state         TEXT NOT NULL CHECK (state IN ('watched', 'ended')),
  registered_ms BIGINT NOT NULL,
  -- The next read; of an ended task, when it ended.
  due_ms        BIGINT NOT NULL,
  missing_ms    BIGINT,
  PRIMARY KEY (runtime, task)
);
CREATE INDEX tasks_due ON tasks (runtime, due_ms) WHERE state = 'watched';
CREATE INDEX tasks_ended ON tasks (due_ms) WHERE state = 'ended';

CREATE TABLE interactions (
  id            UUID PRIMARY KEY,
  runtime       TEXT NOT NULL,
  agent         TEXT NOT NULL,
  task          TEXT NOT NULL,
  external      TEXT NOT NULL,
  context       TEXT,
  seen_as       TEXT,
  kind          TEXT NOT NULL,
  form_json     TEXT NOT NULL,
  digest        TEXT NOT NULL,
  owner         TEXT,
  owner_doubt   BOOLEAN NOT NULL DEFAULT FALSE,
  state         TEXT NOT NULL CHECK (state IN ('open', 'answering', 'settled')),
  outcome       TEXT,
  how_json      TEXT,
  settled_ms    BIGINT,
  contra_ms     BIGINT,
  contra_count  BIGINT NOT NULL DEFAULT 0,
  claims        BIGINT NOT NULL DEFAULT 0,
  opened_ms     BIGINT NOT NULL,
  read_ms       BIGINT NOT NULL,
  missing_ms    BIGINT,
  read_due_ms   BIGINT,
  routed        BOOLEAN NOT NULL DEFAULT FALSE,
  rev           BIGINT NOT NULL DEFAULT 1,
  version       BIGINT NOT NULL DEFAULT 1,
  UNIQUE (runtime, agent, task, external),
  CHECK ((state = 'settled') = (settled_ms IS NOT NULL))
);
CREATE INDEX interactions_open ON interactions (runtime, id) WHERE state <> 'settled';
CREATE INDEX interactions_due ON interactions (runtime, read_due_ms) WHERE read_due_ms IS NOT NULL;
CREATE INDEX interactions_task ON interactions (runtime, task);
CREATE INDEX interactions_external ON interactions (external);
CREATE INDEX interactions_settled ON interactions (settled_ms) WHERE state = 'settled';

CREATE TABLE cards (
  id             UUID PRIMARY KEY,
  interaction_id UUID NOT NULL REFERENCES interactions (id),
  place          TEXT NOT NULL,
  install        TEXT NOT NULL,
  channel        TEXT,
  message        TEXT,
  thread         TEXT,
  -- queued: never sent. posting: a send is under way or its outcome unknown. live: on the platform.
  -- gone: deleted there. frozen: can never be edited again. failed: no place took it.
  -- unposted: the interaction ended first.
  state          TEXT NOT NULL CHECK (state IN ('queued', 'posting', 'live', 'gone', 'frozen', 'failed', 'unposted')),
  fallback       BOOLEAN NOT NULL DEFAULT FALSE,
  shown_rev      BIGINT,
  cut            BOOLEAN NOT NULL DEFAULT FALSE,
  posting_ms     BIGINT,
  post_rev       BIGINT,
  empty_reads    BIGINT NOT NULL DEFAULT 0,
  empty_read_ms  BIGINT,
  editing_ms     BIGINT,
  confirm_ms     BIGINT,
  created_ms     BIGINT NOT NULL,
  UNIQUE (interaction_id, place)
);
CREATE INDEX cards_message ON cards (channel, message);

-- Stray second copies of a card, edited like it.
CREATE TABLE copies (
  card_id UUID NOT NULL REFERENCES cards (id),
  channel TEXT NOT NULL,
  message TEXT NOT NULL,
  PRIMARY KEY (channel, message)
);
CREATE INDEX copies_card ON copies (card_id);

-- The opaque values of controls: what a press means is read here, never from the message.
CREATE TABLE tokens (
  token   TEXT PRIMARY KEY,
  card_id UUID NOT NULL REFERENCES cards (id),
  rev     BIGINT NOT NULL,
  control TEXT NOT NULL,
  digest  TEXT NOT NULL
);
CREATE INDEX tokens_card ON tokens (card_id, rev);

CREATE TABLE clicks (
  id             UUID PRIMARY KEY,
  dedupe_key     TEXT NOT NULL UNIQUE,
  install        TEXT,
  platform       TEXT NOT NULL,
  realm          TEXT,
  chat_user      TEXT NOT NULL,
  home_team      TEXT,
  team           TEXT,
  enterprise     TEXT,
  org_install    BOOLEAN NOT NULL DEFAULT FALSE,
  channel        TEXT,
  message        TEXT,
  thread         TEXT,
  own_message    BOOLEAN NOT NULL DEFAULT FALSE,
  reply          TEXT,
  interaction_id UUID,
  card_id        UUID,
  control        TEXT,
  shown          TEXT,
  cut            BOOLEAN NOT NULL DEFAULT FALSE,
  received_ms    BIGINT NOT NULL,
  state          TEXT NOT NULL CHECK (state IN ('stored', 'claimed', 'delivered', 'counted', 'withdrawn', 'refused')),
  subject        TEXT,
  rule           TEXT,
  why            TEXT,
  policy         TEXT,
  decided_ms     BIGINT
);
CREATE INDEX clicks_interaction ON clicks (interaction_id);
CREATE INDEX clicks_received ON clicks (received_ms);
CREATE INDEX clicks_reply ON clicks (received_ms) WHERE reply IS NOT NULL;

CREATE TABLE votes (
  interaction_id UUID NOT NULL REFERENCES interactions (id),
  click_id       UUID NOT NULL REFERENCES clicks (id),
  subject        TEXT NOT NULL,
  digest         TEXT NOT NULL,
  position       BIGINT NOT NULL,
  voided         TEXT,
  PRIMARY KEY (click_id)
);
CREATE UNIQUE INDEX votes_once ON votes (interaction_id, subject) WHERE voided IS NULL;
CREATE INDEX votes_interaction ON votes (interaction_id);

CREATE TABLE answers (
  id             UUID PRIMARY KEY,
  interaction_id UUID NOT NULL REFERENCES interactions (id),
  number         BIGINT NOT NULL,
  click_id       UUID NOT NULL REFERENCES clicks (id),
  subject        TEXT NOT NULL,
  decision_json  TEXT NOT NULL,
  digest         TEXT NOT NULL,
  message_id     TEXT NOT NULL,
  body_json      TEXT NOT NULL,
  claimed_ms     BIGINT NOT NULL,
  deliver_until_ms BIGINT NOT NULL,
  sent_json      TEXT NOT NULL,
  in_flight      BOOLEAN NOT NULL DEFAULT FALSE,
  ended_json     TEXT,
  accepted_ms    BIGINT,
  contra_ms      BIGINT,
  contra_count   BIGINT NOT NULL DEFAULT 0,
  candidate      BOOLEAN NOT NULL DEFAULT FALSE,
  attempts       BIGINT NOT NULL DEFAULT 0,
  said           TEXT,
  released_ms    BIGINT,
  UNIQUE (interaction_id, number)
);
-- One live claim per interaction: the guarantee below everything else.
CREATE UNIQUE INDEX answers_live ON answers (interaction_id) WHERE released_ms IS NULL;
CREATE INDEX answers_click ON answers (click_id);

-- The outbox. One group is worked on in order; finished rows are deleted.
CREATE TABLE jobs (
  id             BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind           TEXT NOT NULL,
  group_key      TEXT NOT NULL,
  seq            BIGINT NOT NULL,
  priority       BIGINT NOT NULL,
  ref            UUID NOT NULL,
  payload_json   TEXT NOT NULL,
  created_ms     BIGINT NOT NULL,
  available_ms   BIGINT NOT NULL,
  lease_owner    TEXT,
  lease_until_ms BIGINT NOT NULL DEFAULT 0,
  lease_epoch    BIGINT NOT NULL DEFAULT 0,
  attempts       BIGINT NOT NULL DEFAULT 0,
  -- An edit that was wanted once more while it was under way.
  again          BOOLEAN NOT NULL DEFAULT FALSE,
  last_error     TEXT,
  dead_ms        BIGINT
);
CREATE INDEX jobs_due ON jobs (priority, available_ms, id) WHERE dead_ms IS NULL;
CREATE INDEX jobs_group ON jobs (group_key, seq) WHERE dead_ms IS NULL;
CREATE UNIQUE INDEX jobs_one_edit ON jobs (ref) WHERE kind = 'edit' AND dead_ms IS NULL;
CREATE INDEX jobs_ref ON jobs (ref);

CREATE TABLE leases (
  name     TEXT PRIMARY KEY,
  owner    TEXT NOT NULL,
  until_ms BIGINT NOT NULL,
  epoch    BIGINT NOT NULL
);

-- Append-only and hash-chained. The row `0` of audit_head is the lock and the chain's head.
CREATE TABLE audit (
  seq          BIGINT PRIMARY KEY,
  at_ms        BIGINT NOT NULL,
  event        TEXT NOT NULL,
  runtime      TEXT,
  interaction  TEXT,
  subject      TEXT,
  digest       TEXT,
  decision     TEXT,
  rule         TEXT,
  policy       TEXT,
  runtime_said TEXT,
  private      TEXT,
  clicker      TEXT,
  reason       TEXT,
  salt         TEXT,
  prev         TEXT NOT NULL,
  hash         TEXT NOT NULL
);
CREATE INDEX audit_clicker ON audit (clicker) WHERE clicker IS NOT NULL;
CREATE TABLE audit_head (
  id   BIGINT PRIMARY KEY CHECK (id = 0),
  seq  BIGINT NOT NULL,
  hash TEXT NOT NULL
);
INSERT INTO audit_head (id, seq, hash) VALUES (0, 0, '0000000000000000000000000000000000000000000000000000000000000000');

-- What operators should look at, each thing once.
CREATE TABLE alerts (
  key      TEXT PRIMARY KEY,
  text     TEXT NOT NULL,
  since_ms BIGINT NOT NULL,
  times    BIGINT NOT NULL DEFAULT 1
);

-- Deliveries that were signed and could not be read: nothing is lost.
CREATE TABLE unreadable (
  id          UUID PRIMARY KEY,
  source      TEXT NOT NULL,
  received_ms BIGINT NOT NULL,
  body        BYTEA NOT NULL
);
