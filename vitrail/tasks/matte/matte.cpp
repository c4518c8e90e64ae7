// SPDX-License-Identifier: Apache-2.0
// The alpha of each pixel in the unknown region of a trimap, and the object cut out.
#include <numeric>

#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/sam/prompt_text.h"
#include "vitrail/tasks/images/tensor_json_internal.h"
#include "vitrail/tasks/matte/matte_model.h"
#include "vitrail/tasks/matte/trimap.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

enum class MatteColors : uint8_t { rgba, gray };

struct MatteOptions {
  MatteColors colors = MatteColors::rgba;
  int64_t band = 10;
  bool raw = false;
};

void describe_matte(Fields& fields, MatteOptions& options) {
  fields.integer({"band", "With mask: pixels on both sides of its edge whose alpha is unknown"}, options.band, 1, 1024);
  fields.choice({"colors", "Rendered image: the object cut out, with alpha (rgba), or alpha in grey"}, options.colors,
                {{"rgba", MatteColors::rgba}, {"gray", MatteColors::gray}});
  fields.boolean({"raw", "Add all values of alpha to the JSON, row by row"}, options.raw);
}

struct Matted {
  Tensor alpha;  // [height, width]
  double unknown = 0;
};

class Matte : public Request {
 public:
  Matte(const MatteModel& model, RequestOptions& options, const Setting& setting)
      : model_(model), max_pixels_(setting.max_pixels), with_mask_(setting.input_files.contains("mask")) {
    const bool with_trimap = setting.input_files.contains("trimap");
    if (with_mask_ && with_trimap) throw Error("mask", "no trimap beside it", "both");
    if (!with_mask_ && !with_trimap)
      throw Error("trimap", "one for the image, or a mask from which it is made", "none of them");
    if (with_trimap && !options.texts("band").empty()) throw Error("band", "a mask beside it", "a trimap");
    describe_matte(options, options_);
  }

  bool keeps_photo() const override { return true; }

  void compute(Item& item, const ImageEncoding* /*encoding*/, const ProgressCallback& /*progress*/) const override {
    if (options_.raw) check_result_size(item.height, item.width);
    const image::Image trimap = trimap_for(item);
    const double unknown = unknown_share(trimap);
    if (unknown == 0) {
      throw Error(
          with_mask_ ? "mask" : "trimap",
          with_mask_ ? "pixels outside of the object" : "pixels of unknown alpha, such as 128 (a mask has none)",
          "none");
    }
    Matted result{model_.alpha(item.photo, trimap), unknown};
    require_finite("alpha", result.alpha);
    item.value = std::move(result);
  }

  std::string json(const Item& item) const override {
    const Matted& result = of(item);
    const std::span<const float> values = values_in(result);
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    nlohmann::ordered_json object{{"path", item.name},
                                  {"shape", {result.alpha.size(0), result.alpha.size(1)}},
                                  {"mean", sum / static_cast<double>(values.size())},
                                  {"unknown", result.unknown}};
    if (options_.raw) object["alpha"] = values_of(result.alpha);
    return pipeline::json_line(object);
  }

  std::vector<Output> outputs() const override { return {{"alpha", {}}}; }
  Tensor array(const Item& item, size_t /*output*/) const override { return of(item).alpha; }

  image::Image render(const Item& item) const override {
    const Matted& result = of(item);
    image::Image alpha = image::make_image(result.alpha.size(1), result.alpha.size(0), 1);
    std::ranges::transform(values_in(result), alpha.pixels.begin(),
                           [](float value) { return static_cast<uint8_t>(value * 255 + 0.5F); });
    return alpha;
  }

  std::vector<uint8_t> render_png(const Item& item) const override {
    return options_.colors == MatteColors::gray ? Request::render_png(item)
                                                : image::encode_png(item.photo, render(item));
  }

 private:
  static const Matted& of(const Item& item) { return std::any_cast<const Matted&>(item.value); }
  static std::span<const float> values_in(const Matted& result) {
    return {result.alpha.data<float>(), static_cast<size_t>(result.alpha.numel())};
  }

  image::Image trimap_for(const Item& item) const {
    const char* const name = with_mask_ ? "mask" : "trimap";
    const image::DecodeOptions decode{.mode = image::ColorMode::grey, .max_pixels = max_pixels_};
    const image::Image grey = image::decode(std::as_bytes(std::span(*item.input_files.at(name))), decode, name);
    if (grey.width != item.photo.width || grey.height != item.photo.height)
      throw Error(name, str("the image's size ", item.photo.width, "×", item.photo.height),
                  str(grey.width, "×", grey.height));
    return with_mask_ ? trimap_of(sam::mask_of_image(grey, name), options_.band) : grey;
  }

  const MatteModel& model_;
  int64_t max_pixels_;
  bool with_mask_;
  MatteOptions options_;
};

}  // namespace

Task matte_task() {
  return {
      .name = "matte",
      .model = "a matting model (ViTMatte)",
      .help = "Cut objects out, with the alpha of their edges",
      .describe = describe_defaults<MatteOptions, describe_matte>,
      .input_files = {{"trimap", "Trimap of the image: 255 in the foreground, 0 in the background, 128 where unknown"},
                      {"mask", "Mask of the object, instead of a trimap: 0 outside"}},
      .can_render = true,
      .model_options = false,
      .fits = is_model<MatteModel>,
      .request = [](const LoadedModel& model, RequestOptions& options,
                    const Setting& setting) -> std::unique_ptr<Request> {
        return std::make_unique<Matte>(as_model<MatteModel>(model), options, setting);
      }};
}

}  // namespace vitrail::tasks
