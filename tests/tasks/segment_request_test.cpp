// SPDX-License-Identifier: Apache-2.0
// The options of /v1/segment, without a server.
#include "vitrail/tasks/segment/segment_request_internal.h"

#include <gtest/gtest.h>

#include "tests/support/messages.h"
#include "vitrail/base/fields.h"
#include "vitrail/image/encode.h"

namespace vitrail::tasks {
namespace {

using testing::contains;
using testing::error_of;

SegmentRequest take(const Parameters& given) {
  RequestOptions options;
  options.add(given);
  SegmentRequest request = take_segment_request(options, 1'000'000);
  options.require_all_taken();
  return request;
}

// The values of the options by their rows.
std::vector<std::string> values_of(const sam::AutomaticOptions& options) {
  std::vector<std::string> values;
  for (const FieldRow& row : rows_of(sam::describe_automatic, options)) values.push_back(row.preset);
  return values;
}

TEST(SegmentRequest, EachOptionOfEverythingSetsItsOwnFieldAlone) {
  const std::vector<FieldRow> rows = rows_of(sam::describe_automatic);
  EXPECT_EQ(rows.size(), 13u);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> want = values_of({});
    want[i] = "1";
    EXPECT_EQ(values_of(*take({{"everything", ""}, {rows[i].option, "1"}}).everything), want) << rows[i].option;
    const std::string message = error_of([&] { take({{"everything", ""}, {rows[i].option, "x"}}); });
    EXPECT_TRUE(message.starts_with(rows[i].option + ": expected ")) << message;
    EXPECT_EQ(error_of([&] {
                take({{"point", "1,2"}, {rows[i].option, "1"}});
              }),
              rows[i].option + ": expected everything beside it, got none");
  }
  EXPECT_TRUE(contains(error_of([] {
                         take({{"everything", ""}, {"min-area", "5"}, {"max-area", "4"}});
                       }),
                       "min-area: expected at most max-area, got 5 and 4"));
  EXPECT_EQ(take({{"everything", ""}, {"min-area", "4"}, {"max-area", "4"}}).everything->max_area, 4);
}

TEST(SegmentRequest, PointsABoxAndSingleMakeAPrompt) {
  const SegmentRequest request = take({{"point", "1,2"}, {"point", "3.5,4,0"}, {"box", "5,6,7,8"}, {"single", "true"}});
  ASSERT_TRUE(request.prompt.has_value());
  EXPECT_FALSE(request.everything.has_value());
  ASSERT_EQ(request.prompt->points.size(), 2U);
  EXPECT_EQ(request.prompt->points[0].label, 1);
  EXPECT_EQ(request.prompt->points[1].x, 3.5);
  EXPECT_EQ(request.prompt->points[1].label, 0);
  EXPECT_EQ(request.prompt->box->y1, 8);
  EXPECT_FALSE(request.prompt->multimask);
  EXPECT_TRUE(take({{"box", "5,6,7,8"}}).prompt->multimask);
  EXPECT_TRUE(contains(error_of([] { take({}); }), "point, box, mask or everything, got none"));
  EXPECT_TRUE(contains(error_of([] { take({{"everything", "false"}}); }), "point, box, mask or everything"));
  EXPECT_TRUE(contains(error_of([] { take({{"single", ""}, {"everything", ""}}); }), "single: expected point"));
  EXPECT_TRUE(contains(error_of([] {
                         take({{"point", "1,2"}, {"everything", ""}});
                       }),
                       "everything: expected no prompt"));
  Parameters many(1024, {"point", "1,2"});
  EXPECT_EQ(take(many).prompt->points.size(), 1024U);
  many.emplace_back("point", "1,2");
  EXPECT_TRUE(contains(error_of([&] { take(many); }), "at most 1024 points, got 1025"));
}

TEST(SegmentRequest, AMaskIsAPromptByItselfAndFollowsTheImagesSize) {
  image::Image mask = image::make_image(8, 4, 1);
  for (int64_t y = 0; y < 4; ++y) std::fill_n(mask.row(y), 4, uint8_t{255});
  const std::vector<uint8_t> png = image::encode_png(mask);
  const SegmentRequest request = take({{"mask", std::string(png.begin(), png.end())}});
  const sam::Prompt prompt = resolved_prompt(request, 8, 4, 16);
  ASSERT_EQ(prompt.mask_logits.shape(), (Shape{16, 16}));
  EXPECT_GT(prompt.mask_logits.data<float>()[0], 0);
  EXPECT_LT(prompt.mask_logits.data<float>()[15], 0);
  EXPECT_THROW(resolved_prompt(request, 8, 5, 16), Error);  // another size than the image
  const SegmentRequest point = take({{"point", "8,4"}});
  EXPECT_FALSE(resolved_prompt(point, 8, 4, 16).mask_logits.defined());
  EXPECT_THROW(resolved_prompt(point, 7, 4, 16), Error);  // outside
  EXPECT_THROW(take({{"mask", "no image"}}), Error);
  EXPECT_THROW(take({{"mask", "data:image/png;base64,QUI="}}), Error);
}

TEST(SegmentRequest, RefusalsNameTheOptionAndItsValue) {
  EXPECT_EQ(error_of([] { take({}); }), "request: expected point, box, mask or everything, got none of them");
  EXPECT_EQ(error_of([] { take({{"single", "1"}}); }), "single: expected point, box or mask beside it, got none");
  EXPECT_EQ(error_of([] {
              take({{"everything", "1"}, {"box", "1,2,3,4"}});
            }),
            "everything: expected no prompt beside it, got point, box or mask");
  EXPECT_EQ(error_of([] {
              take({{"point", "1"}});
            }),
            "point: expected X,Y or X,Y,LABEL in pixels, with the label 1 (in the object) or 0 (outside it), got '1'");
  EXPECT_EQ(error_of([] {
              take({{"everything", "1"}, {"points-per-side", "0"}});
            }),
            "points-per-side: expected an integer from 1 to 256, got '0'");
  for (const char* name : {"points-per-side", "points-per-batch"}) {  // what a client may ask of a server
    EXPECT_NO_THROW(take({{"everything", "1"}, {name, "256"}}));
    EXPECT_THROW(take({{"everything", "1"}, {name, "257"}}), Error);
  }
  EXPECT_EQ(error_of([] {
              take({{"everything", "1"}, {"crop-nms-thresh", "2"}});
            }),
            "crop-nms-thresh: expected a number from 0 to 1, got '2'");
  const SegmentRequest none = take({{"point", "1,2"}, {"single", "false"}});
  EXPECT_TRUE(none.prompt->multimask);
  EXPECT_FALSE(none.prompt->box.has_value());
  const SegmentRequest box = take({{"box", "1,2.5,3,4"}});
  EXPECT_EQ(box.prompt->box->x0, 1);
  EXPECT_EQ(box.prompt->box->y0, 2.5);
  EXPECT_EQ(box.prompt->box->x1, 3);
  EXPECT_TRUE(box.prompt->points.empty());
}

// The pixels of a mask are limited as those of an image.
TEST(SegmentRequest, AMaskHasAtMostThePixelsOfTheLimit) {
  image::Image mask = image::make_image(8, 4, 1);
  mask.pixels[0] = 255;
  const std::vector<uint8_t> png = image::encode_png(mask);
  const auto taken = [&](int64_t max_pixels) {
    RequestOptions options;
    options.add("mask", std::string(png.begin(), png.end()));
    return take_segment_request(options, max_pixels);
  };
  EXPECT_TRUE(taken(32).prompt.has_value());
  EXPECT_THROW(taken(31), Error);
}

}  // namespace
}  // namespace vitrail::tasks
