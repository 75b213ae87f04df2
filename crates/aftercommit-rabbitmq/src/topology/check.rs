use aftercommit_core::{BrokerError, Finding, Subscription};

use crate::config::Config;

pub(crate) async fn check(
    _config: &Config,
    _subscription: &Subscription,
) -> Result<Vec<Finding>, BrokerError> {
    Ok(Vec::new())
}
