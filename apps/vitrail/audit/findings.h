// SPDX-License-Identifier: Apache-2.0
#pragma once
// The parts of find_all(): each adds the findings of one kind or two.
#include "apps/vitrail/audit/audit.h"

namespace vitrail::app {

void find_unreadable(Audit& audit);
void find_odd(Audit& audit);
// Near-identical images, and those on both sides of a split.
void find_duplicates(Audit& audit, double threshold);
// Probable label errors, and classes that cannot be told apart.
void find_label_errors(Audit& audit);
void find_outliers(Audit& audit);
void find_next_to_label(Audit& audit, const AuditSettings& settings);

}  // namespace vitrail::app
