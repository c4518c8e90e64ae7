// SPDX-License-Identifier: Apache-2.0
#pragma once
// The folder of a dual model (CLIP, SigLIP) in the form of the one that it was opened from, which other libraries read
// too: weights, configuration, and the files of its processor and tokenizer.
#include <filesystem>
#include <string>

#include "vitrail/models/load.h"

namespace vitrail {

// The text of the configuration that the model was opened with, from its folder.
std::string dual_config_json(const models::OpenedModel& opened);

// Throws Error for a folder with a file of another model's processor (weights::check_no_other_processor()).
void check_no_other_dual_processor(const models::OpenedModel& opened, const std::filesystem::path& folder);

// Copies the files of the processor, if there are any.
void copy_dual_processor(const models::OpenedModel& opened, const std::filesystem::path& folder);

// Copies the files of a tokenizer, if there are any.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace vitrail
