// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the images that are audited.
#include "apps/vitrail/audit/audit.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/input/labelled_sets.h"

namespace vitrail::app {

struct AuditedSet {
  std::string dataset;                    // a labelled set; all its splits are read
  std::vector<std::string> unlabelled{};  // images and folders
  LabelledSets sets{};
  StreamOptions images{.batch = 32};
};

// The images with their features.  Throws Error for a set that cannot be opened, for fewer than two classes, and if
// none of its images can be read.
Audit read_audited(const AuditedSet& set, const Model& model, const GlobalOptions& global);

}  // namespace vitrail::app
