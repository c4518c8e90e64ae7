// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/run_files_internal.h"

#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/train/recipe/recipe_inputs.h"

namespace vitrail::train {
namespace fs = std::filesystem;
namespace {

// Whether there is a file, a folder with entries, or a link, wherever it leads.
bool holds_something(const fs::path& path) {
  std::error_code unknown;
  const fs::file_status status = fs::symlink_status(path, unknown);
  if (fs::is_directory(status)) return !fs::is_empty(path, unknown) && !unknown;
  return fs::exists(status);
}

bool is_of_finished_run(const fs::path& summary) {
  std::error_code unknown;
  if (!fs::is_regular_file(summary, unknown)) return false;
  try {
    const auto json = models::parse_json(read_text_file(summary), summary.string());
    return json.is_object() && json.contains("finished") && json["finished"] == true;
  } catch (const Error&) {
    return false;
  }
}

// Whether the recipe in the folder is that of a run with another objective.
bool has_other_objective(const fs::path& run, const std::string& objective) {
  std::error_code unreadable;
  if (!fs::is_regular_file(run / "recipe.json", unreadable)) return false;
  try {
    return recipe_objective(run / "recipe.json") != objective;
  } catch (const Error&) {
    return false;
  }
}

// What a solution must not replace; empty if it may be computed.
std::string obstacle_of_solution(const fs::path& run, const std::string& objective, bool resume) {
  if (has_checkpoint(run)) return "the checkpoints of a run";
  if (resume) return has_other_objective(run, objective) ? find_results(run) : "";
  const std::string found = find_run_file(run);
  return found == "summary.json" ? "a finished run" : found;
}

}  // namespace

bool has_checkpoint(const fs::path& run) {
  std::error_code unknown;
  for (const char* name : {"last.safetensors", "previous.safetensors"}) {
    if (fs::exists(run / "checkpoints" / name, unknown)) return true;
  }
  return false;
}

std::string find_run_file(const fs::path& run) {
  for (const char* name : {"summary.json", "recipe.json", "metrics.csv", "report.html", "model", "last", "retrain",
                           "explain", "checkpoints/best.safetensors", "checkpoints/ema.safetensors"}) {
    if (holds_something(run / name)) return name;
  }
  return "";
}

std::string find_results(const fs::path& run) {
  if (is_of_finished_run(run / "summary.json")) return "summary.json";
  if (holds_something(run / "checkpoints" / "best.safetensors")) return "";
  for (const char* name : {"model", "last"}) {
    if (holds_something(run / name)) return name;
  }
  return "";
}

void require_startable(const fs::path& run, bool resume) {
  const bool resumable = has_checkpoint(run);
  if (resume && resumable) return;
  const std::string results = resumable ? "" : find_results(run);
  if (resume) {
    if (results.empty()) return;
    throw Error(run.string(), "a run with a checkpoint to continue from, or a folder without a run",
                "results (" + results + ") without a checkpoint");
  }
  const std::string found = resumable ? "checkpoints" : find_run_file(run);
  if (found.empty()) return;
  throw Error(run.string(), str("a folder without a run", results.empty() ? ", or --resume to continue its run" : ""),
              "a folder with " + found);
}

void require_solvable(const fs::path& run, const std::string& objective, bool resume) {
  const std::string obstacle = obstacle_of_solution(run, objective, resume);
  if (obstacle.empty()) return;
  throw Error(run.string(), "a folder without a run, or --resume to compute its " + objective + " again",
              "a folder with " + obstacle);
}

}  // namespace vitrail::train
