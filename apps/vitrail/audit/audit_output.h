// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `vitrail audit` prints and writes.
#include "apps/vitrail/audit/audit.h"
#include "apps/vitrail/output/output.h"

namespace vitrail::app {

// At most `limit` findings of each kind for text, all for JSON (an object) and CSV (a row for each image of a finding).
void print_audit(const Audit& audit, Format format, int64_t limit);

// A row for each image: file, label, prediction, split, self_confidence, neighbor_distance, error.
void write_scores(const std::string& file, const Audit& audit);

// One self-contained page with at most `limit` findings of each kind.
struct AuditPage {
  std::string dataset, command_line;
  int64_t limit = 0;
};
void write_audit_page(const std::string& file, const Audit& audit, const AuditPage& page);

}  // namespace vitrail::app
