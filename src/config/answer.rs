//! How an answer names the person who clicked: `answer_with` and the keys that belong to it.
//!
//! Invariant: there is no way to answer as nobody.

use super::address::Plain;
use super::check::Check;
use super::headers;
use super::runtime::Raw;
use super::server::PublicUrl;

/// How the clicking person's subject is carried to the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerWith {
    /// A token of ours that names the person.
    Jwt { issuer: String, audience: String },
    /// The watching credential, with the subject in this header.
    SubjectHeader { header: String },
}

pub(super) const SUBJECT_HEADER: &str = "Nylorun-Subject";
const SCOPE: &str = "sessions:own";

/// What a runtime's section says about answering.
pub(super) struct Given {
    pub(super) word: Option<String>,
    pub(super) issuer: Option<String>,
    pub(super) audience: Option<String>,
    pub(super) subject_header: Option<String>,
    pub(super) has_token: bool,
    pub(super) has_scopes: bool,
}

impl Given {
    pub(super) fn check(
        self,
        at: &str,
        public_url: Option<&PublicUrl>,
        plain: Plain,
        check: &mut Check<'_>,
    ) -> Option<AnswerWith> {
        let Self { word, issuer, audience, subject_header, has_token, has_scopes } = self;
        let fix = "add answer_with = \"jwt\" or \"subject_header\"";
        match check.required(at, "answer_with", word, fix)?.as_str() {
            "jwt" => {
                unused(check, at, "jwt", [("subject_header", &subject_header)]);
                jwt(check, at, issuer, audience, public_url, plain)
            }
            "subject_header" => {
                unused(check, at, "subject_header", [("issuer", &issuer), ("audience", &audience)]);
                if !has_token {
                    let fix = "add the application key with which to answer: token = { env = \"NAME\" }";
                    check.required::<()>(at, "token", None, fix);
                }
                if !has_scopes {
                    check.error(
                        &format!("{at}.scopes"),
                        "the list is empty, but a subject header needs a scope".into(),
                        format!("write scopes = [\"{SCOPE}\"], or leave the key out"),
                    );
                }
                let header = subject_header.unwrap_or_else(|| SUBJECT_HEADER.into());
                headers::subject(check, &format!("{at}.subject_header"), &header)
                    .then_some(AnswerWith::SubjectHeader { header })
            }
            word => {
                not_an_answer(check, &format!("{at}.answer_with"), word);
                None
            }
        }
    }
}

fn unused<const N: usize>(check: &mut Check<'_>, at: &str, way: &str, keys: [(&str, &Option<String>); N]) {
    for (key, value) in keys {
        if value.is_some() {
            check.warn(
                &format!("{at}.{key}"),
                format!("means nothing with answer_with = \"{way}\""),
                "remove it".into(),
            );
        }
    }
}

/// What an answer may do at the runtime.
pub(super) fn scopes(check: &mut Check<'_>, key: &str, scopes: Option<Vec<String>>) -> Vec<String> {
    let scopes = scopes.unwrap_or_else(|| vec![SCOPE.into()]);
    for (at, scope) in scopes.iter().enumerate() {
        if scope.is_empty() || !scope.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\') {
            check.error(
                &format!("{key}[{at}]"),
                format!("`{scope}` is no scope"),
                "write one scope per element, without spaces: [\"sessions:own\"]".into(),
            );
        }
    }
    scopes
}

fn jwt(
    check: &mut Check<'_>,
    at: &str,
    issuer: Option<String>,
    audience: Option<String>,
    public_url: Option<&PublicUrl>,
    plain: Plain,
) -> Option<AnswerWith> {
    let path = format!("{at}.issuer");
    let issuer = match (issuer, public_url) {
        (Some(text), _) => check.address(&path, &text, plain).map(|_| text),
        (None, Some(public)) => Some(public.text.clone()),
        // A public_url that is there but wrong is noted already; a second finding would mislead.
        (None, None) if check.has_finding("server.public_url") || check.faulty("server") => None,
        (None, None) => check.required(
            at,
            "issuer",
            None,
            "add server.public_url, which is the issuer of tokens and where runtimes fetch the public keys",
        ),
    };
    let audience = check
        .required(
            at,
            "audience",
            audience,
            "add the audience by which the runtime knows tokens that are for it",
        )
        .filter(|text| check.filled(&format!("{at}.audience"), text));
    Some(AnswerWith::Jwt { issuer: issuer?, audience: audience? })
}

fn not_an_answer(check: &mut Check<'_>, key: &str, word: &str) {
    let message = match word {
        "none" => "answering without a person is refused: this runtime can record who answered".to_owned(),
        "actor" => "`actor` is not spoken by an a2a runtime".to_owned(),
        other => format!("`{other}` is no way to answer"),
    };
    check.error(key, message, "write \"jwt\" or \"subject_header\"".into());
}

/// Two runtimes that accept tokens for one audience could replay each other's.
pub(super) fn same_audience(check: &mut Check<'_>, runtimes: &[Raw]) {
    let jwt: Vec<(usize, &str)> = runtimes
        .iter()
        .enumerate()
        .filter(|(_, runtime)| runtime.answer_with.as_deref() == Some("jwt"))
        .filter_map(|(at, runtime)| Some((at, runtime.audience.as_deref()?)))
        .collect();
    for (n, (at, audience)) in jwt.iter().enumerate() {
        if let Some((first, _)) = jwt.iter().take(n).find(|(_, other)| other == audience) {
            check.error(
                &format!("runtime[{at}].audience"),
                format!("`{audience}` is also the audience of runtime[{first}]: each could use tokens meant for the other"),
                "give each runtime its own audience".into(),
            );
        }
    }
}
