// SPDX-License-Identifier: Apache-2.0
// DeiT-Tiny on all shared photographs, from image files to logits, compared with timm.
#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/paths.h"
#include "vitrail/image/decode.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/infer/session.h"
#include "vitrail/models/load.h"

namespace vitrail::infer {
namespace {

int64_t argmax(const Tensor& row) {
  const float* data = row.data<float>();
  return std::max_element(data, data + row.numel()) - data;
}

TEST(DeitTiny, LogitsOverAllSharedImagesEqualTimms) {
  VITRAIL_SKIP_WITH_SANITIZER();
  VITRAIL_NEED_ASSETS(assets);
  const testing::Golden golden = testing::read_golden(testing::fixture("deit_tiny_logits.safetensors"));
  const auto files = nlohmann::json::parse(golden.config).at("files");
  ASSERT_EQ(files.size(), 71u);
  const models::OpenedModel opened = models::open_model(assets / "weights/deit_tiny_patch16_224.fb_in1k");
  const image::EvalTransform transform = transform_of(opened.config.preprocessing, "deit");
  const Session session(models::build_model(opened));
  for (size_t i = 0; i < files.size(); ++i) {
    const auto path = assets / files[i].get<std::string>();
    const Tensor logits = session.logits(image::apply(image::read_image(path), transform).unsqueeze(0));
    const Tensor expected = golden["logits"].narrow(0, static_cast<int64_t>(i), 1);
    EXPECT_TRUE(testing::close(logits, expected, 1e-4)) << path;
    EXPECT_EQ(argmax(logits), argmax(expected)) << path;
  }
}

}  // namespace
}  // namespace vitrail::infer
