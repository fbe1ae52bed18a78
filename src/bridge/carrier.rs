//! Introduces identity to the connectors: who calls, as headers.
//!
//! Invariant: connectors and identity do not know each other; this is the one place between them.

use crate::bridge::ports::{Carrier, CarryError};
use crate::domain::clock::Millis;
use crate::domain::ids::Subject;
use crate::identity::subject::{Carry, CarryError as Why};
use secrecy::SecretString;

impl Carrier for Carry {
    fn carry(
        &self,
        subject: Option<&Subject>,
        at: Millis,
    ) -> Result<Vec<(String, SecretString)>, CarryError> {
        self.headers(subject, at).map_err(|why| match why {
            Why::NoWay => CarryError::Unmappable,
            Why::Key(_) | Why::NoCredential => CarryError::NotReady { what: why.to_string() },
        })
    }

    fn takes(&self, _subject: &Subject) -> bool {
        self.names_people()
    }
}
