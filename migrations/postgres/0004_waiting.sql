-- Questions "what waits for me?" that could not be answered at once.
CREATE TABLE asked (
  id          UUID PRIMARY KEY,
  install     TEXT NOT NULL,
  chat_user   TEXT NOT NULL,
  channel     TEXT,
  reply       TEXT,
  received_ms BIGINT NOT NULL
);
CREATE INDEX asked_received ON asked (received_ms);

-- The Homes that people have opened, and what each shows.
CREATE TABLE homes (
  id           UUID PRIMARY KEY,
  install      TEXT NOT NULL,
  chat_user    TEXT NOT NULL,
  opened_ms    BIGINT NOT NULL,
  published_ms BIGINT,
  shown        TEXT,
  UNIQUE (install, chat_user)
);
CREATE INDEX homes_opened ON homes (opened_ms);
-- One living job for each.
CREATE UNIQUE INDEX jobs_one_home ON jobs (ref) WHERE kind = 'home' AND dead_ms IS NULL;

-- Private notices that no way led to their person: they stand where the person looks.
CREATE TABLE kept_notices (
  id          UUID PRIMARY KEY,
  install     TEXT NOT NULL,
  chat_user   TEXT NOT NULL,
  realm       TEXT NOT NULL,
  notice_json TEXT NOT NULL,
  kept_ms     BIGINT NOT NULL,
  shown_ms    BIGINT
);
CREATE INDEX kept_notices_of ON kept_notices (install, chat_user);
CREATE INDEX kept_notices_age ON kept_notices (kept_ms);

-- The address of a card's message, once somebody asked for it.
ALTER TABLE cards ADD COLUMN link TEXT;

-- What a route asks of a form, so that many open interactions are looked through without their forms.
ALTER TABLE interactions ADD COLUMN server TEXT;
ALTER TABLE interactions ADD COLUMN tool TEXT;
UPDATE interactions SET
  server = (SELECT f ->> 'value' FROM jsonb_array_elements(form_json::jsonb -> 'facts') f
            WHERE f ->> 'label' = 'server' LIMIT 1),
  tool = (SELECT f ->> 'value' FROM jsonb_array_elements(form_json::jsonb -> 'facts') f
          WHERE f ->> 'label' = 'tool' LIMIT 1)
WHERE form_json NOT LIKE '%\u0000%';
CREATE INDEX interactions_waiting ON interactions (id) WHERE state = 'open';
