//! One signing key of ours, as a private JSON Web Key (RFC 7517, RFC 8037) with its start time.
//!
//! Invariant: a value of this type has been proven to sign (its public half belongs to its private
//! one), and its Debug output shows the key id only.

use crate::domain::clock::Millis;
use crate::domain::form::{canonical, sha256_hex};
use crate::identity::jwt;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The algorithms we sign with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SigningAlg {
    Es256,
    EdDsa,
}

impl SigningAlg {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    fn algorithm(self) -> Algorithm {
        match self {
            Self::Es256 => Algorithm::ES256,
            Self::EdDsa => Algorithm::EdDSA,
        }
    }
}

/// One private key.
pub(crate) struct Key {
    pub(crate) kid: String,
    pub(crate) alg: SigningAlg,
    pub(crate) starts: Millis,
    /// The scalar (ES256) or the seed (EdDSA), 32 bytes.
    private: SecretSlice<u8>,
    /// The uncompressed point (65 bytes) or the public key (32 bytes).
    public: Vec<u8>,
}

/// How a key is written in the file.
#[derive(Serialize, Deserialize)]
pub(crate) struct Written {
    kty: String,
    crv: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alg: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kid: Option<String>,
    x: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    y: Option<String>,
    d: String,
    /// When it begins to sign, RFC 3339.
    starts: jiff::Timestamp,
}

/// Why a key cannot be used, in words that name no part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("a key is neither P-256 (ES256) nor Ed25519 (EdDSA)")]
    Kind,
    #[error("a key's values are not base64url of the right length, or do not belong together")]
    Values,
    #[error("the machine's source of randomness failed")]
    Random,
    #[error("signing failed")]
    Sign,
}

impl Key {
    /// Makes a new key.
    pub(crate) fn make(alg: SigningAlg, starts: Millis) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        match alg {
            SigningAlg::Es256 => {
                let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
                    .map_err(|_| KeyError::Random)?;
                // RFC 5915 inside PKCS #8, as ring writes it: the scalar at 36, the point at the end.
                let bytes = document.as_ref();
                let scalar = bytes.get(36..68).ok_or(KeyError::Values)?;
                let point =
                    bytes.len().checked_sub(65).and_then(|at| bytes.get(at..)).ok_or(KeyError::Values)?;
                Self::of(alg, starts, scalar, point.to_vec())
            }
            SigningAlg::EdDsa => {
                let mut seed = Zeroizing::new([0_u8; 32]);
                random.fill(seed.as_mut()).map_err(|_| KeyError::Random)?;
                let pair =
                    Ed25519KeyPair::from_seed_unchecked(seed.as_ref()).map_err(|_| KeyError::Values)?;
                Self::of(alg, starts, seed.as_ref(), pair.public_key().as_ref().to_vec())
            }
        }
    }

    fn of(alg: SigningAlg, starts: Millis, private: &[u8], public: Vec<u8>) -> Result<Self, KeyError> {
        let fits = match alg {
            SigningAlg::Es256 => EcdsaKeyPair::from_private_key_and_public_key(
                &ECDSA_P256_SHA256_FIXED_SIGNING,
                private,
                &public,
                &SystemRandom::new(),
            )
            .is_ok(),
            SigningAlg::EdDsa => Ed25519KeyPair::from_seed_and_public_key(private, &public).is_ok(),
        };
        if !fits {
            return Err(KeyError::Values);
        }
        let mut key = Self { kid: String::new(), alg, starts, private: private.to_vec().into(), public };
        key.kid = key.thumbprint();
        Ok(key)
    }

    pub(crate) fn read(written: &Written) -> Result<Self, KeyError> {
        let bytes = |text: &str| BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| KeyError::Values);
        let private = Zeroizing::new(bytes(&written.d)?);
        let x = bytes(&written.x)?;
        let starts = Millis(written.starts.as_millisecond());
        match (written.kty.as_str(), written.crv.as_str(), written.alg.as_deref()) {
            ("EC", "P-256", None | Some("ES256")) => {
                let y = bytes(written.y.as_deref().ok_or(KeyError::Values)?)?;
                if x.len() != 32 || y.len() != 32 {
                    return Err(KeyError::Values);
                }
                Self::of(SigningAlg::Es256, starts, &private, [&[4], x.as_slice(), y.as_slice()].concat())
            }
            ("OKP", "Ed25519", None | Some("EdDSA")) => Self::of(SigningAlg::EdDsa, starts, &private, x),
            _ => Err(KeyError::Kind),
        }
    }

    pub(crate) fn write(&self) -> Written {
        let (kty, crv, x, y) = self.parts();
        Written {
            kty: kty.into(),
            crv: crv.into(),
            alg: Some(self.alg.as_str().into()),
            kid: Some(self.kid.clone()),
            x,
            y,
            d: BASE64URL_NOPAD.encode(self.private.expose_secret()),
            starts: jiff::Timestamp::from_millisecond(self.starts.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH),
        }
    }

    /// The public half, for the JWKS document.
    pub(crate) fn public(&self) -> Value {
        let (kty, crv, x, y) = self.parts();
        let mut jwk = json!({
            "kty": kty, "crv": crv, "x": x, "kid": self.kid, "alg": self.alg.as_str(), "use": "sig",
        });
        if let Some(y) = y {
            jwk["y"] = y.into();
        }
        jwk
    }

    fn parts(&self) -> (&'static str, &'static str, String, Option<String>) {
        match self.alg {
            SigningAlg::Es256 => {
                let (x, y) =
                    self.public.get(1..).unwrap_or_default().split_at_checked(32).unwrap_or_default();
                ("EC", "P-256", BASE64URL_NOPAD.encode(x), Some(BASE64URL_NOPAD.encode(y)))
            }
            SigningAlg::EdDsa => ("OKP", "Ed25519", BASE64URL_NOPAD.encode(&self.public), None),
        }
    }

    /// The key id: the thumbprint of RFC 7638.
    fn thumbprint(&self) -> String {
        let (kty, crv, x, y) = self.parts();
        let mut members = json!({ "crv": crv, "kty": kty, "x": x });
        if let Some(y) = y {
            members["y"] = y.into();
        }
        let hex = sha256_hex(canonical(&members).as_bytes());
        BASE64URL_NOPAD.encode(&HEXLOWER.decode(hex.as_bytes()).unwrap_or_default())
    }

    pub(crate) fn sign(&self, claims: &impl Serialize) -> Result<SecretString, KeyError> {
        jwt::init();
        let mut header = Header::new(self.alg.algorithm());
        header.kid = Some(self.kid.clone());
        let private = self.private.expose_secret();
        let key = match self.alg {
            SigningAlg::Es256 => {
                EncodingKey::from_ec_der(&Zeroizing::new([private, self.public.as_slice()].concat()))
            }
            SigningAlg::EdDsa => EncodingKey::from_ed_der(private),
        };
        jsonwebtoken::encode(&header, claims, &key).map(SecretString::from).map_err(|_| KeyError::Sign)
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("kid", &self.kid).field("alg", &self.alg).finish_non_exhaustive()
    }
}
