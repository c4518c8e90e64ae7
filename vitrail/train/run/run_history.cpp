// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/run_history.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/csv_internal.h"
#include "vitrail/train/recipe/recipe.h"
#include "vitrail/train/recipe/recipe_inputs.h"
#include "vitrail/train/run/run_data_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "explain";
constexpr const char* kValidation = "val";  // also the event of the start, which is validated before the first epoch
constexpr std::string_view kPrefix = "epoch-";

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

RunCurve& curve_of(std::vector<RunCurve>& curves, const std::string& event, const std::string& column) {
  const auto is_it = [&](const RunCurve& curve) { return curve.event == event && curve.column == column; };
  const auto found = std::ranges::find_if(curves, is_it);
  return found == curves.end() ? curves.emplace_back(RunCurve{event, column}) : *found;
}

}  // namespace

std::string kept_folder(int64_t epoch) {
  char name[40];
  std::snprintf(name, sizeof name, "%s/%s%04lld", kFolder, kPrefix.data(), static_cast<long long>(epoch));
  return name;
}

std::vector<KeptModel> kept_models(const fs::path& run) {
  std::vector<KeptModel> models;
  for_each_entry(run / kFolder, [&](const fs::path& entry) {
    const std::string name = entry.filename().string();
    if (!name.starts_with(kPrefix)) return;
    if (const auto epoch = number_of(std::string_view(name).substr(kPrefix.size())))
      models.push_back({static_cast<int64_t>(*epoch), entry});
  });
  std::ranges::sort(models, {}, &KeptModel::epoch);
  return models;
}

std::vector<RunCurve> run_curves(const fs::path& run) {
  const fs::path file = run / "metrics.csv";
  const std::string content = read_text_file(file);
  data::CsvReader reader(file.string(), content);
  const std::optional<data::CsvRow> header = reader.next();
  const std::vector<std::string> columns = header ? header->fields : std::vector<std::string>();
  const auto place = [&](const char* name) {
    return static_cast<size_t>(std::ranges::find(columns, name) - columns.begin());
  };
  const size_t event = place("event"), epoch = place("epoch"), loss = place("loss"), end = place("learning_rate");
  if (std::max({event, epoch, loss, end}) == columns.size())
    throw Error(file.string(), "columns event, epoch, loss, the scores and learning_rate", join(columns));
  std::vector<RunCurve> curves;
  while (const std::optional<data::CsvRow> row = reader.next()) {
    if (row->fields.size() != columns.size()) continue;  // a line that is being written
    const std::string of = row->fields[event] == "start" ? kValidation : row->fields[event];
    const std::optional<double> at = number_of(row->fields[epoch]);
    for (size_t column = loss; column < end && at && of != "test"; ++column) {
      if (const std::optional<double> value = number_of(row->fields[column]))
        curve_of(curves, of, columns[column]).add(*at, *value);
    }
  }
  return curves;
}

bool is_run(const fs::path& folder) {
  std::error_code unknown;
  return fs::is_regular_file(folder / "recipe.json", unknown);
}

std::string objective_of_run(const fs::path& run) { return recipe_objective(run / "recipe.json"); }

HeldOutImages held_out_images(const fs::path& run, const image::DecodeOptions& decode) {
  const int64_t channels = decode.mode == image::ColorMode::grey ? 1 : 3;
  RunData data = open_sets(read_recipe(run / "recipe.json").data, channels);
  if (data.multi_label) throw Error(run.string(), "a run whose images have one class each", "several labels");
  const Subset& subset = data.validation.dataset ? data.validation : data.test;
  if (!subset.dataset) throw Error(run.string(), "a run with validation or test images", "one without");
  HeldOutImages images{subset.dataset, subset.samples, std::move(data.classes)};
  if (images.samples.empty()) {
    images.samples.resize(static_cast<size_t>(subset.size()));
    std::iota(images.samples.begin(), images.samples.end(), 0);
  }
  return images;
}

}  // namespace vitrail::train
