//! The parts of a table of keys: keys, the types of their values, rows. This module names no scheme.

mod choices;
mod params;
mod values;

pub(crate) use choices::FakeIpNets;
pub use choices::{
    AddressPreference, FleetIdentity, PluginMode, PrivateAccess, RejectPolicy, RestartPolicy,
    UdpTransport,
};
pub use params::{EndpointRole, EndpointRoles, SchemeParam, Setting};
pub(crate) use params::{ParamKey, concat_params, hop_param, listener_param, shared_param};
pub(crate) use values::{
    FilePath, FleetWord, PositiveNumber, Seconds, SecretValue, ShortWait, Tristate, Typed,
    UserSource, WholeNumber, words,
};
