//! JSON Web Tokens over ring: one provider of cryptography in the whole process.
//!
//! Invariant: an algorithm is chosen by the key or by configuration, never by a token's header;
//! what is not in the short list below does not exist here (no HMAC, no `none`).
//!
//! Keys are handed to the library as raw bytes that only this provider reads: ES256 private is the
//! 32-byte scalar followed by the 65-byte public point, EdDSA private the 32-byte seed.

use crate::domain::clock::Millis;
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{Error as SignatureError, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey, Validation};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair,
    RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};
use std::sync::Once;
use std::time::Duration;

/// How long a token of ours lives at most.
pub const LIFE: Duration = Duration::from_mins(1);

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    // JWK export and thumbprints are ours (`keys`); the library's would panic and are not called.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes ring the process-wide provider. Harmless when called again.
pub fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error means that one is installed already.
        let _ = PROVIDER.install_default();
    });
}

enum RingSigner {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the library's signature")]
fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    let bytes = key.as_bytes();
    let made = match algorithm {
        Algorithm::ES256 => {
            let (scalar, point) = bytes.split_at_checked(32).ok_or(ErrorKind::InvalidEcdsaKey)?;
            EcdsaKeyPair::from_private_key_and_public_key(
                &ECDSA_P256_SHA256_FIXED_SIGNING,
                scalar,
                point,
                &SystemRandom::new(),
            )
            .map(RingSigner::Es256)
            .map_err(|_| ErrorKind::InvalidEcdsaKey)?
        }
        Algorithm::EdDSA => Ed25519KeyPair::from_seed_unchecked(bytes)
            .map(RingSigner::EdDsa)
            .map_err(|_| ErrorKind::InvalidEddsaKey)?,
        _ => return Err(ErrorKind::UnsupportedAlgorithm.into()),
    };
    Ok(Box::new(made))
}

impl Signer<Vec<u8>> for RingSigner {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, SignatureError> {
        match self {
            Self::Es256(key) => {
                let signed = key.sign(&SystemRandom::new(), message).map_err(|_| SignatureError::new())?;
                Ok(signed.as_ref().to_vec())
            }
            Self::EdDsa(key) => Ok(key.sign(message).as_ref().to_vec()),
        }
    }
}

impl JwtSigner for RingSigner {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Es256(_) => Algorithm::ES256,
            Self::EdDsa(_) => Algorithm::EdDSA,
        }
    }
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the library's signature")]
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    match algorithm {
        Algorithm::ES256 | Algorithm::EdDSA | Algorithm::RS256 => {
            Ok(Box::new(RingVerifier { algorithm: *algorithm, key: key.clone() }))
        }
        _ => Err(ErrorKind::UnsupportedAlgorithm.into()),
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        let holds = match (self.algorithm, self.key.kind()) {
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(public)) => {
                UnparsedPublicKey::new(&ED25519, public).verify(message, signature)
            }
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            _ => return Err(SignatureError::new()),
        };
        holds.map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// What a token of ours says: a person acts, through Countersign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    pub iss: String,
    pub aud: String,
    pub sub: String,
    pub act: Actor,
    pub scope: String,
    /// Seconds since 1970.
    pub iat: i64,
    /// Seconds since 1970, at most [`LIFE`] after `iat`.
    pub exp: i64,
    pub jti: String,
}

/// Who acts for the subject (RFC 8693 §4.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    pub sub: String,
}

/// Checks a token with a known key and algorithm, by the clock that is passed in.
///
/// # Errors
/// When the signature, the algorithm, the issuer, the audience or the times do not hold.
pub fn verify(
    token: &str,
    key: &DecodingKey,
    algorithm: Algorithm,
    (issuer, audience): (&str, &str),
    now: Millis,
) -> Result<Claims, Error> {
    init();
    let mut rules = Validation::new(algorithm);
    rules.set_issuer(&[issuer]);
    rules.set_audience(&[audience]);
    rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    // The library would read the machine's clock.
    rules.validate_exp = false;
    let claims: Claims = jsonwebtoken::decode(token, key, &rules)?.claims;
    let seconds = now.0.div_euclid(1000);
    if claims.exp <= seconds {
        return Err(ErrorKind::ExpiredSignature.into());
    }
    if claims.iat > seconds.saturating_add(30) {
        return Err(ErrorKind::ImmatureSignature.into());
    }
    Ok(claims)
}
