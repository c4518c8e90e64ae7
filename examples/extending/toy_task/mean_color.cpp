// SPDX-License-Identifier: Apache-2.0
#include "examples/extending/toy_task/mean_color.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace extending {
namespace {

using namespace vitrail;

struct MeanColorOptions {
  int64_t grid = 2;
};

// The command line, the server, the C interface and Python read the options as they are described.
void describe_mean_color(Fields& fields, MeanColorOptions& options) {
  fields.integer({"grid", "Cells in a row and in a column"}, options.grid, 1, 64);
}

class MeanColor : public tasks::Request {
 public:
  explicit MeanColor(tasks::RequestOptions& options) { describe_mean_color(options, options_); }

  bool keeps_photo() const override { return true; }

  void compute(tasks::Item& item, const tasks::ImageEncoding* /*encoding*/,
               const ProgressCallback& /*progress*/) const override {
    const image::Image& photo = item.photo;
    const Tensor means = Tensor::zeros({options_.grid, options_.grid, 3});
    std::vector<float> pixels(static_cast<size_t>(options_.grid * options_.grid));
    for (int64_t y = 0; y < photo.height; ++y) {
      for (int64_t x = 0; x < photo.width; ++x) {
        const int64_t cell = y * options_.grid / photo.height * options_.grid + x * options_.grid / photo.width;
        for (int64_t c = 0; c < 3; ++c)
          means.data<float>()[3 * cell + c] += photo.row(y)[photo.channels * x + std::min(c, photo.channels - 1)];
        ++pixels[static_cast<size_t>(cell)];
      }
    }
    for (int64_t i = 0; i < means.numel(); ++i)
      means.data<float>()[i] /= std::max(pixels[static_cast<size_t>(i / 3)], 1.0F);
    item.value = means;
  }

  std::vector<tasks::Output> outputs() const override { return {{"mean_color", {options_.grid, options_.grid, 3}}}; }
  Tensor array(const tasks::Item& item, size_t /*output*/) const override { return means_of(item); }

  std::string json(const tasks::Item& item) const override {
    const Tensor means = means_of(item);
    return nlohmann::ordered_json{
        {"path", item.name},
        {"shape", {options_.grid, options_.grid, 3}},
        {"mean_color", std::vector<float>(means.data<float>(), means.data<float>() + means.numel())}}
        .dump();
  }

  image::Image render(const tasks::Item& item) const override {
    image::Image cells = image::make_image(options_.grid, options_.grid, 3);
    const Tensor means = means_of(item);
    std::transform(means.data<float>(), means.data<float>() + means.numel(), cells.pixels.begin(),
                   [](float mean) { return static_cast<uint8_t>(mean); });
    return cells;
  }

 private:
  static Tensor means_of(const tasks::Item& item) { return std::any_cast<Tensor>(item.value); }

  MeanColorOptions options_;
};

}  // namespace

tasks::Task mean_color_task() {
  return {.name = "mean-color",
          .model = "any model",
          .help = "Show the mean colours of cells",
          .describe = tasks::describe_defaults<MeanColorOptions, describe_mean_color>,
          .can_render = true,
          .fits = [](const tasks::LoadedModel&) { return true; },
          .request = [](const tasks::LoadedModel&, tasks::RequestOptions& options, const tasks::Setting&)
              -> std::unique_ptr<tasks::Request> { return std::make_unique<MeanColor>(options); }};
}

}  // namespace extending
