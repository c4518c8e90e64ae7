// SPDX-License-Identifier: Apache-2.0
// The section of the report and the model card of a run with the objective "pretrain".
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "vitrail/analysis/knn.h"
#include "vitrail/analysis/nearest.h"
#include "vitrail/analysis/pca.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/image/resize_internal.h"
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

// Colours from 0 to 1, [rows, columns, 3], enlarged.
image::Image image_of(const Tensor& colors) {
  constexpr int64_t kSide = 96;
  const int64_t rows = colors.size(0), columns = colors.size(1);
  image::Image image = image::make_image(columns, rows, 3);
  const Tensor values = colors.contiguous();
  for (int64_t i = 0; i < values.numel(); ++i) {
    const float value = values.data<float>()[i];
    image.pixels[static_cast<size_t>(i)] = std::isfinite(value) ? static_cast<uint8_t>(std::lround(255 * value)) : 0;
  }
  const int64_t scale = std::max<int64_t>(1, kSide / std::max(rows, columns));
  return image::resize(image, scale * columns, scale * rows, image::Filter::nearest);
}

}  // namespace

// Held-out images without augmentation.
std::optional<data::Batch> Pretrain::held_out_batch(int64_t images) const {
  if (data_.validation.size() == 0) return std::nullopt;
  data::LoaderOptions options = data::evaluation_options(options_);
  options.rank = 0, options.ranks = 1, options.batch_size = images;
  options.subset = data_.validation.samples;
  data::Loader loader(data_.validation.dataset, options);
  loader.start(0);
  std::optional<data::Batch> batch = loader.next();
  return batch && !batch->samples.empty() ? std::move(batch) : std::nullopt;
}

// What the method makes of held-out images.
std::optional<Gallery> Pretrain::prediction_gallery() {
  const std::optional<data::Batch> batch = held_out_batch(kShownImages);
  if (!batch) return std::nullopt;
  set_training(false);
  const std::vector<Tensor> predicted = method_->predicted_images(batch->images);
  if (predicted.empty()) return std::nullopt;
  Gallery gallery{"Held-out images, the patches that the model sees, and what it predicts of the others", {}};
  for (int64_t i = 0; i < batch->images.size(0); ++i) {
    gallery.images.push_back(make_thumbnail(pixels_of(batch->images, i, options_.transform)));
    for (const Tensor& images : predicted)
      gallery.images.push_back(make_thumbnail(pixels_of(images.contiguous(), i, options_.transform)));
  }
  return gallery;
}

// The nearest neighbours of held-out images, and the principal components of their patches.
std::vector<Gallery> Pretrain::feature_galleries(const HeadFeatures& features, const std::string& when) const {
  std::vector<Gallery> galleries{
      neighbour_gallery("Held-out images, each before its nearest three" + when, features, *data_.validation.dataset)};
  const std::optional<data::Batch> batch = held_out_batch(2 * kShownImages);
  const models::VisionTransformer& model = saved_model();
  if (!batch || model.config().global_pool == models::GlobalPool::none) return galleries;
  const Tensor tokens = model.forward_features(batch->images);
  const std::array<int64_t, 2> grid = model.grid_of(batch->images.size(2), batch->images.size(3));
  const int64_t prefix = model.num_prefix_tokens();
  constexpr int64_t kColors = 3;  // principal components, which need a patch more
  if (tokens.size(0) * grid[0] * grid[1] <= kColors || tokens.size(2) < kColors) return galleries;
  std::vector<Tensor> patches;
  for (int64_t i = 0; i < tokens.size(0); ++i) {
    patches.push_back(
        tokens.select(0, i).narrow(0, prefix, grid[0] * grid[1]).contiguous().view({grid[0], grid[1], tokens.size(2)}));
  }
  Gallery gallery{"Principal components of the patches of held-out images" + when, {}};
  for (const analysis::PcaMaps& maps : analysis::pca_maps(patches)) gallery.images.push_back(image_of(maps.colors));
  galleries.push_back(std::move(gallery));
  return galleries;
}

void Pretrain::add_section(const Measurement& measurement, Split split, Report& report) {
  const autograd::NoGrad no_grad;
  set_training(false);
  report.galleries.push_back(view_gallery(data_.train, with_several_views(loader_.options()), kShownImages));
  if (auto gallery = prediction_gallery()) report.galleries.push_back(std::move(*gallery));
  report.galleries.insert(report.galleries.end(), start_galleries_.begin(), start_galleries_.end());
  if (const auto* features = std::any_cast<HeadFeatures>(&measurement.details)) {
    const std::vector<Gallery> galleries = feature_galleries(*features, "");
    report.galleries.insert(report.galleries.end(), galleries.begin(), galleries.end());
  }
  if (start_) add_start(*start_, measurement, split, report);
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
