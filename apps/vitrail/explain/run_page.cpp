// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/explain/run_page.h"

#include <filesystem>

#include "apps/vitrail/output/progress.h"
#include "vitrail/base/error.h"
#include "vitrail/explain/run_page.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/load.h"
#include "vitrail/train/run/run_history.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFollowed = 4;
constexpr int64_t kMaxHeldOut = 500;  // images whose predictions are compared, evenly spaced

std::string name_of(const fs::path& run) { return (run.has_filename() ? run : run.parent_path()).filename().string(); }

// Images that the run held out, with their labels.
class HeldOut {
 public:
  HeldOut(const std::string& run, const image::DecodeOptions& decode) : images_(train::held_out_images(run, decode)) {
    const int64_t all = std::ssize(images_.samples), count = std::min(all, kMaxHeldOut);
    for (int64_t i = 0; i < count; ++i) chosen_.push_back(images_.samples[static_cast<size_t>(i * all / count)]);
  }

  std::vector<int64_t> labels() const {
    std::vector<int64_t> labels;
    for (const int64_t sample : chosen_) labels.push_back(images_.dataset->label(sample));
    return labels;
  }
  const std::vector<std::string>& classes() const { return images_.classes; }

  explain::LabelledImage at(int64_t i) const {
    const data::Sample sample = images_.dataset->get(chosen_[static_cast<size_t>(i)]);
    return {sample.image, fs::path(sample.path).filename().string(), sample.label};
  }

 private:
  train::HeldOutImages images_;
  std::vector<int64_t> chosen_;
};

}  // namespace

explain::LearningPage run_page(const RunPageInput& input, const explain::ExplainOptions& options,
                               const GlobalOptions& global) {
  explain::ExplainedRun run{.name = name_of(input.run), .objective = train::objective_of_run(input.run)};
  const std::vector<train::KeptModel> models = train::kept_models(input.run);
  if (models.empty()) throw Error(input.run, "models of a run that was trained with --set explain.every=N", "none");
  for (const train::KeptModel& model : models) run.models.push_back({model.epoch, model.folder});
  const models::VisionTransformerConfig vit = models::open_model(models.front().folder).config.vit;
  const image::DecodeOptions decode{.mode = infer::color_mode_of(vit.in_chans), .apply_exif = input.apply_exif};
  for (const train::RunCurve& curve : train::run_curves(input.run))
    run.curves.push_back({curve.event, curve.column, curve.epochs, curve.values});
  std::optional<HeldOut> held_out;
  if (vit.num_classes > 0) {
    held_out.emplace(input.run, decode);
    run.classes = held_out->classes();
    run.held_out_labels = held_out->labels();
    run.held_out = [&](int64_t i) { return held_out->at(i); };
  } else if (input.images.empty()) {
    throw Error(input.run, "images after the folder, because the run learns without classes", "none");
  }
  for (const std::string& path : input.images)
    run.images.push_back({image::read_image(path, decode), fs::path(path).filename().string()});
  const int64_t all = std::ssize(run.held_out_labels), followed = input.images.empty() ? std::min(kFollowed, all) : 0;
  for (int64_t i = 0; i < followed; ++i) run.images.push_back(run.held_out(i * all / followed));
  run.threads = global.threads;
  std::optional<Progress> progress;
  int64_t shown = 0;
  return explain::explain_run(run, options, [&](int64_t done, int64_t total) {
    if (!progress) progress.emplace("passes", static_cast<size_t>(total), global.quiet);
    progress->step(done - shown);
    shown = done;
  });
}

}  // namespace vitrail::app
