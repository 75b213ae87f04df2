//! The management API: JSON over HTTP, read only and blocking.

use std::time::Duration;

use aftercommit_core::BrokerError;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::config::{Config, Management};
use crate::error::PRODUCT;

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Api<'a> {
    management: &'a Management,
    agent: Agent,
    vhost: &'a str,
}

impl<'a> Api<'a> {
    pub(super) fn new(config: &'a Config, management: &'a Management) -> Result<Self, BrokerError> {
        let mut tls = TlsConfig::builder();
        if let Some(path) = &config.authority {
            let pem = std::fs::read(path).map_err(|error| backend(Box::new(error)))?;
            let certificates: Vec<_> = parse_pem(&pem)
                .filter_map(|item| match item {
                    Ok(PemItem::Certificate(certificate)) => Some(certificate),
                    _ => None,
                })
                .collect();
            tls = tls.root_certs(RootCerts::new_with_certs(&certificates));
        }
        let agent = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .tls_config(tls.build())
            .build()
            .new_agent();
        Ok(Self { management, agent, vhost: &config.vhost })
    }

    /// The object of this kind and these names in our virtual host; `None` if there is none.
    pub(super) fn get(&self, kind: &str, names: &[&str]) -> Result<Option<Value>, BrokerError> {
        let mut path = format!("{}/api/{kind}/{}", self.management.base, escaped(self.vhost));
        for name in names {
            path.push('/');
            path.push_str(&escaped(name));
        }
        let Management { user, password, .. } = self.management;
        let login = BASE64_STANDARD.encode(format!("{user}:{}", password.expose()));
        let answer = self.agent.get(path).header("authorization", format!("Basic {login}")).call();
        let mut answer =
            answer.map_err(|error| self.unreachable(error.to_string(), Some(Box::new(error))))?;
        match answer.status().as_u16() {
            200 => {
                let text = answer.body_mut().read_to_string().map_err(|error| backend(Box::new(error)))?;
                serde_json::from_str(&text).map(Some).map_err(|error| backend(Box::new(error)))
            }
            404 => Ok(None),
            status @ (401 | 403) => Err(BrokerError::Denied {
                product: PRODUCT,
                address: self.management.base.clone(),
                reason: format!("the management API answered {status} to user {user}"),
            }),
            status => Err(self.unreachable(format!("the management API answered {status}"), None)),
        }
    }

    fn unreachable(&self, reason: String, source: Option<aftercommit_core::BoxError>) -> BrokerError {
        BrokerError::Unreachable { product: PRODUCT, address: self.management.base.clone(), reason, source }
    }
}

fn escaped(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

fn backend(source: aftercommit_core::BoxError) -> BrokerError {
    BrokerError::Backend { product: PRODUCT, action: "read the management API", source }
}
