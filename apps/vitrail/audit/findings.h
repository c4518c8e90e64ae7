// SPDX-License-Identifier: Apache-2.0
#pragma once
// The parts of find_all(): each adds the findings of one kind or two.
#include "apps/vitrail/audit/audit.h"

namespace vitrail::app {

void find_unreadable(Audit& audit);
void find_odd(Audit& audit);
void find_duplicates(Audit& audit, double threshold);  // and leaks between splits
void find_label_errors(Audit& audit);                  // and classes that cannot be told apart
void find_outliers(Audit& audit);
void find_next_to_label(Audit& audit, const AuditSettings& settings);

}  // namespace vitrail::app
