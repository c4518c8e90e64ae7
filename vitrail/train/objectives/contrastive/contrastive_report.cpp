// SPDX-License-Identifier: Apache-2.0
// The section of the report and the model card of a run with the objective "contrastive".
#include <algorithm>

#include "vitrail/analysis/nearest.h"
#include "vitrail/base/error.h"
#include "vitrail/train/objectives/contrastive/contrastive_internal.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/report/report_images_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kShownCaptions = 8, kRetrieved = 3;

// The images of some captions, each before those that its caption retrieves.
Gallery retrieval_gallery(const std::string& title, const PairEmbeddings& pairs, const data::Dataset& dataset) {
  Gallery gallery{title, {}};
  const int64_t texts = pairs.texts.size(0), count = std::min(texts, kShownCaptions);
  const auto show = [&](int64_t row) {
    gallery.images.push_back(make_thumbnail(dataset.image(pairs.samples[static_cast<size_t>(row)])));
  };
  for (int64_t i = 0; i < count; ++i) {
    const int64_t text = i * texts / count;
    show(pairs.image_of_text[static_cast<size_t>(text)]);
    const Tensor query = pairs.texts.narrow(0, text, 1).contiguous();
    const auto nearest = analysis::nearest_rows(query, analysis::TensorRows(pairs.images), kRetrieved);
    for (const analysis::Neighbor& near : nearest.front()) show(near.row);
  }
  return gallery;
}

}  // namespace

void Contrastive::add_section(const Measurement& measurement, Split split, Report& report) {
  report.galleries = training_galleries(data_.images.train, options_);
  if (start_gallery_) report.galleries.push_back(*start_gallery_);
  if (const auto* pairs = std::any_cast<PairEmbeddings>(&measurement.details)) {
    report.galleries.push_back(retrieval_gallery(
        str(split == Split::test ? "Test" : "Held-out", " images, each before the three that its caption retrieves"),
        *pairs, *subset(split).dataset));
  }
  if (!start_) return;
  add_start(*start_, measurement, split, report);
  report.summary["start_loss"] = start_->loss;
}

Gallery Contrastive::gallery_of_start(const PairEmbeddings& pairs) const {
  return retrieval_gallery("Held-out images, each before the three that its caption retrieves, before training", pairs,
                           *data_.images.validation.dataset);
}

std::string Contrastive::model_card(const ReportInput& input) const {
  std::string results;
  for (const auto& [name, value] : score_facts(input)) results += str("- ", name, ": ", value, "\n");
  const double alpha = contrastive_of(*input.recipe).alpha;
  return str("---\nlibrary_name: vitrail\npipeline_tag: zero-shot-image-classification\n---\n# ", input.subject,
             "\n\nTrained further from `", input.recipe->model.init, "` on ", input.images.training,
             " images with captions of `", input.recipe->data.train, "`",
             alpha < 1 ? str("; the weights are the start + ", alpha, " · (trained − start), WiSE-FT") : "",
             ".\n\n```sh\nvitrail zeroshot -m FOLDER IMAGES --labels \"cat,dog\"    # FOLDER: the folder of this ",
             "file\nvitrail embed -m FOLDER IMAGES\n```\n\n## Results\n\n",
             results.empty() ? "No images were held out.\n" : results,
             "\nThe run's `recipe.json` has all settings, `report.html` the curves.\n");
}

}  // namespace vitrail::train
