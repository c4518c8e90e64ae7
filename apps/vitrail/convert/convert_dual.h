// SPDX-License-Identifier: Apache-2.0
#pragma once
// `convert` of a dual model (CLIP, SigLIP) to a folder: in the form of its source, which other libraries read too.
#include <filesystem>
#include <string>

#include "apps/vitrail/convert/convert_int8.h"
#include "apps/vitrail/shell/common.h"

namespace vitrail::app {

// What the form of a dual model's source cannot express; empty if it has all.
std::string why_image_tower_alone(const models::OpenedModel& opened, const ModelOptions& options, bool int8);

// Writes the tensors with the source's configuration and the files of its processor and tokenizer.  Throws Error for a
// folder with another model's processor (weights::check_no_other_processor()), before anything is written.
void write_dual_folder(const models::OpenedModel& opened, const NamedTensors& tensors,
                       const std::filesystem::path& folder);

}  // namespace vitrail::app
