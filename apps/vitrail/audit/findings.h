// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of find_all() that looks at the images themselves.
#include "apps/vitrail/audit/audit.h"

namespace vitrail::app {

void find_odd(Audit& audit);

}  // namespace vitrail::app
