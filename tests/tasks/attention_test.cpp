// SPDX-License-Identifier: Apache-2.0
// The task `attention` with methods that attribute a class's logit.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/pipeline/attribution.h"
#include "vitrail/tasks/images/image_model.h"
#include "vitrail/tasks/run.h"

namespace vitrail::tasks {
namespace {

using nlohmann::json;
using testing::error_of;

image::Image noise_photo() {
  image::Image photo = image::make_image(40, 33, 3);
  for (size_t i = 0; i < photo.pixels.size(); ++i) photo.pixels[i] = static_cast<uint8_t>(i * i * 37 % 251);
  return photo;
}

class AttributionTask : public ::testing::Test {
 protected:
  std::unique_ptr<Request> request(const Parameters& given) const {
    RequestOptions options;
    options.add(given);
    auto result = find_task("attention", *model)->request(*model, options, {.model = "m", .render = true});
    options.require_all_taken();
    result->check(1);
    return result;
  }

  const std::unique_ptr<LoadedModel> model = open_model(testing::fixture("models/timm_token"));
};

TEST_F(AttributionTask, GivesTheMapOfTheMethodWithItsClass) {
  const image::Image photo = noise_photo();
  const auto& images = as_model<ImageModel>(*model);
  const image::ImageView view = photo;
  for (const pipeline::AttributionMethod& method : pipeline::attribution_methods()) {
    const std::string baseline = method.reads_baseline ? "black" : "mean";
    const auto asked = request({{"method", method.name}, {"class", "3"}, {"baseline", baseline}});
    EXPECT_TRUE(asked->is_long() && asked->passes().empty());
    std::vector<Item> items(1);
    items[0].name = "a.png";
    items[0].photo = photo;
    run(*model, *asked, items);
    const json object = json::parse(asked->json(items[0]));
    const pipeline::Attribution want =
        pipeline::attribute(method, images.images(), images.differentiable().model(),
                            images.images().preprocess({&view, 1}), {.target = "3", .baseline = baseline});
    EXPECT_EQ(object["method"], method.name);
    EXPECT_EQ(object["class"], 3);
    EXPECT_EQ(object["label"], "class 3");
    EXPECT_EQ(object["shape"], (json{4, 4}));
    EXPECT_FALSE(object.contains("attending"));
    EXPECT_EQ(object.contains("completeness"), want.completeness.has_value());
    const auto values = object["maps"][0]["values"].get<std::vector<float>>();
    EXPECT_EQ(values, std::vector<float>(want.map.data<float>(), want.map.data<float>() + 16)) << method.name;
    EXPECT_GT(asked->render(items[0]).width, photo.width);
  }
}

TEST_F(AttributionTask, RefusesWhatTheMethodDoesNotRead) {
  EXPECT_ERROR(error_of([&] { request({{"method", "grad_cam"}, {"layer", "0"}}); }), "layer", "method grad_cam");
  EXPECT_ERROR(error_of([&] { request({{"method", "grad_cam"}, {"class", "10"}}); }), "class", "'10'");
  EXPECT_ERROR(error_of([&] { request({{"class", "1"}}); }), "class", "method attention");
}

}  // namespace
}  // namespace vitrail::tasks
