// SPDX-License-Identifier: Apache-2.0
// The worst maps, the classes, and the model card of a run with the objective "semantic".
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/image/decode.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/sam/mask_overlay.h"
#include "vitrail/train/objectives/semantic/semantic_internal.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/report/report_images_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {
namespace {

// A class has the same colour in all images.  Other labels are not coloured.
image::Image map_overlay(const image::Image& image, const std::vector<int32_t>& labels, size_t classes) {
  std::vector<sam::Rle> masks;
  for (size_t c = 0; c < classes; ++c) {
    sam::BinaryMask mask = sam::make_mask(image.width, image.height);
    std::ranges::transform(labels, mask.pixels.begin(),
                           [c](int32_t label) { return std::cmp_equal(label, c) ? 1 : 0; });
    masks.push_back(sam::encode(mask));
  }
  return make_thumbnail(sam::mask_overlay(image, masks));
}

}  // namespace

void Semantic::add_section(const Measurement& measurement, Split split, Report& report) {
  const auto* evaluation = std::any_cast<MapEvaluation>(&measurement.details);  // null without held-out images
  if (!evaluation) return;
  auto& by_class = report.summary["class_iou"];
  for (size_t c = 0; c < data_.classes.size(); ++c) {
    const double iou = evaluation->pixels.iou(static_cast<int64_t>(c));
    if (std::isnan(iou)) continue;  // neither in the maps nor predicted
    report.facts.emplace_back("IoU of " + data_.classes[c], percent(iou, 2));
    by_class[data_.classes[c]] = iou;
  }
  const autograd::NoGrad no_grad;
  use(false);
  const int64_t channels = prepared_.model.config().backbone.in_chans;
  const MapDataset& dataset = *data_.of(split);
  Gallery gallery{"Lowest mean IoU: the map, and the prediction", {}};
  for (const MapAgreement& worst : evaluation->worst) {
    try {
      const image::Image image = image::read_image(
          dataset.path(worst.image), {.mode = infer::color_mode_of(channels), .apply_exif = context_.recipe.data.exif});
      const std::vector<int32_t> labels = dataset.labels(worst.image, image.width, image.height);
      gallery.images.push_back(map_overlay(image, labels, data_.classes.size()));
      gallery.images.push_back(
          map_overlay(image, analysis::argmax_at_size(logits_of(image).squeeze(0), image.height, image.width),
                      data_.classes.size()));
    } catch (const Error&) {  // the evaluation reports it
    }
  }
  report.galleries.push_back(std::move(gallery));
}

std::string Semantic::model_card(const ReportInput& input) const {
  const std::string& init = input.recipe->model.init;
  std::string results;
  for (const auto& [name, value] : score_facts(input)) results += str("- ", name, ": ", value, "\n");
  return str("---\nlibrary_name: vitrail\npipeline_tag: image-segmentation\n---\n# ", input.subject, "\n\n",
             init.empty() ? "Trained from scratch" : "Trained from `" + init + "`", " on ", input.images.training,
             " images with label maps of `", input.recipe->data.train, "`, for ", data_.classes.size(),
             " classes: ", join(data_.classes),
             ".\n\n```sh\nvitrail segment -m FOLDER IMAGE    # FOLDER: the folder of this ",
             "file\n```\n\n## Results\n\n", results.empty() ? "No images were held out.\n" : results,
             "\nThe run's `recipe.json` has all settings, `report.html` the curves and the worst maps.\n");
}

}  // namespace vitrail::train
