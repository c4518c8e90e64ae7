// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds what an earlier run has left in a folder, so that a new one does not replace it.
#include <filesystem>
#include <string>

namespace vitrail::train {

// Whether there is a last or previous checkpoint.
bool has_checkpoint(const std::filesystem::path& run);

// The first file or folder that a run would replace: "summary.json", "model"; empty if there is none.
std::string find_run_file(const std::filesystem::path& run);

// The results that no kill of a process leaves without a checkpoint: summary.json of a finished run, or a model without
// checkpoints/best.safetensors, which is written before it.  Empty if there are none.
std::string find_results(const std::filesystem::path& run);

// Throws Error naming what is there if a run must not begin in the folder: without `resume` if it has a file of a run,
// with it if it has results but no checkpoint to continue from.
void require_startable(const std::filesystem::path& run, bool resume);

// Throws Error likewise if an objective must not be solved in the folder: with `resume` it replaces a finished run of
// the same objective.
void require_solvable(const std::filesystem::path& run, const std::string& objective, bool resume);

}  // namespace vitrail::train
