// SPDX-License-Identifier: Apache-2.0
#pragma once
// The formats of instance datasets.
#include "vitrail/sam/instance_dataset.h"

namespace vitrail::sam {

std::unique_ptr<const InstanceDataset> open_coco_instances(const std::filesystem::path& file);
std::unique_ptr<const InstanceDataset> open_instance_folder(const std::filesystem::path& folder);

// Parses COCO's JSON.  `where` names it; images are relative to `folder`.  For fuzzing too.
std::unique_ptr<const InstanceDataset> parse_coco_instances(const std::string& text, const std::string& where,
                                                            const std::filesystem::path& folder);

}  // namespace vitrail::sam
