// Only in the program as one file (RINGLET_STATIC).
#include <nss.h>

namespace {

// Files and DNS are linked in. For anything else that /etc/nsswitch.conf names for hosts, glibc
// would open a library of this machine's glibc, which need not be of the version linked in.
[[maybe_unused]] const int g_status = ::__nss_configure_lookup("hosts", "files dns");

}  // namespace
