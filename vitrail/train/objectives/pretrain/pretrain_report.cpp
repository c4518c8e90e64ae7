// SPDX-License-Identifier: Apache-2.0
// The section of the report and the model card of a run with the objective "pretrain".
#include <algorithm>
#include <utility>

#include "vitrail/analysis/knn.h"
#include "vitrail/analysis/nearest.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/train/objectives/pretrain/pretrain_internal.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/report/report_images_internal.h"
#include "vitrail/train/report/report_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {

namespace {

constexpr int64_t kShownImages = 4, kShownViews = 7, kNeighbours = 3;

// The loader's views, or several augmented ones.
data::LoaderOptions with_several_views(data::LoaderOptions options) {
  if (!options.views.empty()) return options;
  options.views = {{.count = kShownViews, .size = options.transform.size, .augment = *options.augment}};
  options.augment.reset();
  return options;
}

// Some held-out images, each followed by those with the nearest features.
Gallery neighbour_gallery(const std::string& title, const HeadFeatures& features, const data::Dataset& dataset) {
  Gallery gallery{title, {}};
  const int64_t size = features.rows.size(0), count = std::min(size, 2 * kShownImages);
  const Tensor rows = analysis::normalized_rows(features.rows);
  for (int64_t i = 0; i < count; ++i) {
    const auto nearest = analysis::nearest_rows(rows.narrow(0, i * size / count, 1).contiguous(),
                                                analysis::TensorRows(rows), 1 + kNeighbours);
    for (const auto& near : nearest.front())
      gallery.images.push_back(make_thumbnail(dataset.image(features.samples[static_cast<size_t>(near.row)])));
  }
  return gallery;
}

}  // namespace

// Held-out images, as they are and what the method makes of them.
std::optional<Gallery> Pretrain::prediction_gallery() {
  data::LoaderOptions options = data::evaluation_options(options_);
  options.rank = 0, options.ranks = 1, options.batch_size = kShownImages;
  options.subset = data_.validation.samples;
  data::Loader loader(data_.validation.dataset, options);
  loader.start(0);
  const std::optional<data::Batch> batch = loader.next();
  if (!batch || batch->samples.empty()) return std::nullopt;
  trained_.train(false);
  const std::vector<Tensor> predicted = method_->predicted_images(batch->images);
  if (predicted.empty()) return std::nullopt;
  Gallery gallery{"Held-out images, the patches that the model sees, and what it predicts of the others", {}};
  for (int64_t i = 0; i < batch->images.size(0); ++i) {
    gallery.images.push_back(make_thumbnail(pixels_of(batch->images, i, options.transform)));
    for (const Tensor& images : predicted)
      gallery.images.push_back(make_thumbnail(pixels_of(images.contiguous(), i, options.transform)));
  }
  return gallery;
}

void Pretrain::add_section(const Measurement& measurement, Split, Report& report) {
  const autograd::NoGrad no_grad;
  report.galleries.push_back(view_gallery(data_.train, with_several_views(loader_.options()), kShownImages));
  if (data_.validation.size() == 0) return;
  if (auto gallery = prediction_gallery()) report.galleries.push_back(std::move(*gallery));
  const std::string title = "Held-out images, each before its nearest three";
  if (start_features_)
    report.galleries.push_back(
        neighbour_gallery(title + ", before training", *start_features_, *data_.validation.dataset));
  if (const auto* features = std::any_cast<HeadFeatures>(&measurement.details))
    report.galleries.push_back(neighbour_gallery(title, *features, *data_.validation.dataset));
  if (!start_) return;
  for (const Score& score : start_->scores) {
    report.facts.emplace_back(score.title + " before training", percent(score.value, 2));
    report.summary["start_" + score.name] = score.value;
  }
}

std::string Pretrain::model_card(const ReportInput& input) const {
  const std::string& init = input.recipe->model.init;
  std::string results;
  for (const auto& [name, value] : score_facts(input)) results += str("- ", name, ": ", value, "\n");
  return str("---\nlibrary_name: vitrail\npipeline_tag: image-feature-extraction\n---\n# ", input.subject, "\n\n",
             init.empty() ? "Trained from scratch" : "Trained further from `" + init + "`", " on ",
             input.images.training, " images of `", input.recipe->data.train, "` without labels, by the method ",
             pretrain_of(*input.recipe).method, ". The model has no head.\n\n```sh\n",
             "vitrail embed -m FOLDER IMAGES    # FOLDER: the folder of this file\n",
             "vitrail train LABELLED -m FOLDER -o RUN\n```\n\n## Results\n\n",
             results.empty() ? "No images were held out.\n" : results,
             "\nThe run's `recipe.json` has all settings, `report.html` the curves.\n");
}

}  // namespace vitrail::train
