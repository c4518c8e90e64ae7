// SPDX-License-Identifier: Apache-2.0
// Masks over images, and the model card of a run with the objective "segment".
#include <algorithm>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"
#include "vitrail/sam/mask_evaluation.h"
#include "vitrail/sam/mask_overlay.h"
#include "vitrail/train/objectives/segmentation/segmentation_internal.h"
#include "vitrail/train/report/report_images_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kOverlayImages = 6;  // each with its objects and with the predicted masks
constexpr size_t kOverlayMasks = 12;   // per image

// The preferred mask of a click in the middle of each object.
std::vector<sam::Rle> predicted_masks(const sam::Predictor& predictor, const image::Image& image,
                                      const std::vector<sam::Rle>& objects) {
  const sam::ImageEmbedding embedding = predictor.embed(image);
  std::vector<sam::Rle> masks;
  for (const sam::Rle& object : objects) {
    const sam::Masks three = predictor.predict(embedding, {.points = {sam::middle_of(sam::decode(object))}});
    const auto best = std::max_element(three.iou.begin(), three.iou.end()) - three.iou.begin();
    masks.push_back(
        sam::encode(sam::threshold(predictor.image_logits(three.logits.select(0, best), image.width, image.height))));
  }
  return masks;
}

}  // namespace

// Images with their objects and with the predicted masks.
void Segmentation::add_section(const Measurement&, Split, Report& report) {
  const sam::InstanceDataset* const dataset = data_.test ? data_.test.get() : data_.validation.get();
  if (dataset == nullptr) return;
  Gallery gallery{"Masks: the objects, and what a click in the middle of each gives", {}};
  const sam::Predictor model = predictor();
  const int64_t count = std::min(kOverlayImages, dataset->size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = i * dataset->size() / count;
    try {
      const image::Image image = image::read_image(dataset->path(index), {.apply_exif = context_.recipe.data.exif});
      std::vector<sam::Rle> objects = dataset->masks(index, image.width, image.height);
      objects.resize(std::min(objects.size(), kOverlayMasks));
      gallery.images.push_back(make_thumbnail(sam::mask_overlay(image, objects)));
      gallery.images.push_back(make_thumbnail(sam::mask_overlay(image, predicted_masks(model, image, objects))));
    } catch (const Error&) {  // the evaluation reports it
    }
  }
  report.galleries.push_back(std::move(gallery));
}

std::string Segmentation::model_card(const ReportInput& input) const {
  const std::string& init = input.recipe->model.init;
  std::string results;
  for (const auto& [name, value] : score_facts(input)) results += str("- ", name, ": ", value, "\n");
  return str(
      "---\nlibrary_name: vitrail\npipeline_tag: mask-generation\ntags: [segment-anything]\n---\n",
      "# Segment Anything\n\n", init.empty() ? "Trained from scratch" : "Trained from `" + init + "`", " on ",
      input.images.training, " images with masks of `", input.recipe->data.train, "`.\n\n",
      "```sh\nvitrail segment -m FOLDER IMAGE --point X,Y -o masks    # FOLDER: the folder of this file\n```\n\n",
      "## Results\n\n", results.empty() ? "No images were held out.\n" : results,
      "\nThe run's `recipe.json` has all settings, `report.html` the curves and masks.\n");
}

}  // namespace vitrail::train
