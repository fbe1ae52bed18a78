-- What a person typed with a decision.
ALTER TABLE clicks ADD COLUMN reason TEXT;

-- What was opened in front of one person: a form for a reason, or a page of the whole text. Its token
-- comes back with whatever they do there.
CREATE TABLE openings (
  token     TEXT PRIMARY KEY,
  card_id   UUID NOT NULL REFERENCES cards (id),
  -- The card's drawing that was pressed, and what it showed.
  rev       BIGINT NOT NULL,
  digest    TEXT NOT NULL,
  control   TEXT NOT NULL,
  page      BIGINT NOT NULL,
  platform  TEXT NOT NULL,
  realm     TEXT NOT NULL,
  chat_user TEXT NOT NULL,
  -- Where it was pressed: private answers go there.
  channel   TEXT,
  thread    TEXT,
  -- The delivery that opened it, so that its repeat opens nothing.
  opened_by TEXT,
  UNIQUE (card_id, rev, control, page, platform, realm, chat_user)
);

-- Who has opened which form to its end, while something of it was cut on the card.
CREATE TABLE full_views (
  interaction_id UUID NOT NULL REFERENCES interactions (id),
  digest         TEXT NOT NULL,
  platform       TEXT NOT NULL,
  realm          TEXT NOT NULL,
  chat_user      TEXT NOT NULL,
  seen_ms        BIGINT NOT NULL,
  PRIMARY KEY (interaction_id, digest, platform, realm, chat_user)
);
