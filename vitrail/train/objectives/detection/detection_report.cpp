// SPDX-License-Identifier: Apache-2.0
// The worst images, the classes, and the model card of a run with the objective "detect".
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/draw.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/train/objectives/detection/detection_internal.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/report/report_images_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {
namespace {

constexpr double kDrawnScore = 0.5;
// The side of an image for each pixel of a line, which stays visible in a thumbnail.
constexpr int64_t kPixelsOfLine = 80;

void draw_box(const std::array<double, 4>& box, int64_t index, image::Image& image) {
  const auto pixel = [](double value) { return static_cast<int64_t>(std::lround(value)); };
  const int64_t width = std::max<int64_t>(1, std::max(image.width, image.height) / kPixelsOfLine);
  image::draw_rectangle({pixel(box[0]), pixel(box[1]), pixel(box[2]), pixel(box[3])}, width,
                        image::voc_color(index + 1), image);
}

}  // namespace

void Detection::add_section(const Measurement& measurement, Split split, Report& report) {
  const auto* evaluation = std::any_cast<BoxEvaluation>(&measurement.details);  // null without held-out images
  if (!evaluation) return;
  auto& by_class = report.summary["class_ap50"];
  for (size_t c = 0; c < data_.classes.size(); ++c) {
    const auto ap = evaluation->metrics.average_precision(analysis::CocoArea::all, size_t{0}, static_cast<int64_t>(c));
    if (!ap) continue;  // no object of the class
    report.facts.emplace_back("AP50 of " + data_.classes[c], percent(*ap, 2));
    by_class[data_.classes[c]] = *ap;
  }
  const autograd::NoGrad no_grad;
  prepared_.model.eval();
  const ObjectSamples samples(data_.of(split), infer::color_mode_of(prepared_.model.config().backbone.vit.in_chans),
                              context_.recipe.data);
  Gallery gallery{"Lowest F1: the labels, and the boxes that are found", {}};
  for (const BoxAgreement& worst : evaluation->worst) {
    const auto sample = samples.get(worst.image);
    if (!sample) continue;  // the evaluation reports it
    image::Image labels = image::to_image(sample->image, image::ColorMode::rgb), boxes = labels;
    for (const data::LabelledObject& object : sample->objects) draw_box(object.box, object.index, labels);
    for (const Found& each : found_in(sample->image, predict(sample->image))) {
      if (each.score > kDrawnScore) draw_box(each.box, each.index, boxes);
    }
    gallery.images.push_back(make_thumbnail(labels));
    gallery.images.push_back(make_thumbnail(boxes));
  }
  report.galleries.push_back(std::move(gallery));
}

std::string Detection::model_card(const ReportInput& input) const {
  const std::string& init = input.recipe->model.init;
  std::string results;
  for (const auto& [name, value] : score_facts(input)) results += str("- ", name, ": ", value, "\n");
  return str("---\nlibrary_name: vitrail\npipeline_tag: object-detection\n---\n# ", input.subject, "\n\n",
             init.empty() ? "Trained from scratch" : "Trained from `" + init + "`", " on ", input.images.training,
             " images with boxes of `", input.recipe->data.train, "`, for ", data_.classes.size(),
             " classes: ", join(data_.classes),
             ".\n\n```sh\nvitrail detect -m FOLDER IMAGE    # FOLDER: the folder of this ",
             "file\n```\n\n## Results\n\n", results.empty() ? "No images were held out.\n" : results,
             "\nThe run's `recipe.json` has all settings, `report.html` the curves and the worst images.\n");
}

}  // namespace vitrail::train
