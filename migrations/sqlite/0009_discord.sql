-- What the chat said of the account together with a press (Discord: roles): needed where the account cannot be
-- asked for afterwards.
ALTER TABLE clicks ADD COLUMN said_json TEXT;

-- The same with a question that is answered later.
ALTER TABLE asked ADD COLUMN home_team TEXT;
ALTER TABLE asked ADD COLUMN said_json TEXT;

-- Gateway sessions, to be taken up again after a restart or by another replica. `epoch`: of the lease under
-- which it was saved; an older one does not overwrite it.
CREATE TABLE gateway_sessions (
  install    TEXT PRIMARY KEY,
  epoch      BIGINT NOT NULL,
  -- Empty: there is none.
  session    TEXT NOT NULL,
  seq        BIGINT NOT NULL,
  resume_url TEXT NOT NULL,
  saved_ms   BIGINT NOT NULL
);
