// SPDX-License-Identifier: Apache-2.0
#pragma once
// The limit of the files that the process may open (ulimit -n).
#include <cstddef>

namespace vitrail::app {

// Raises the soft limit, at most to the hard one, so that a server may have `connections` open beside its own files.
// Returns how many fit, which are at most `connections`.
size_t fit_connections(size_t connections);

}  // namespace vitrail::app
