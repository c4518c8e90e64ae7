// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/instance_dataset.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/image/encode.h"
#include "vitrail/sam/polygon_mask.h"

namespace vitrail::sam {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::error_of;

// The masks of pycocotools 2.0.11: frPyObjects([polygon], 7, 9).
TEST(PolygonMask, EqualsPycocotools) {
  const std::vector<std::pair<std::vector<double>, std::string>> cases{
      {{1, 1, 6, 1, 6, 5, 1, 5}, "8430000000d0"},
      {{0.3, 0.2, 8.7, 3.1, 4.4, 6.9}, "8162N101NO1O2N5"},
      {{2, 6, 4.5, 0.5, 7, 6, 1, 2.5, 8, 2.5}, "c0150N15OO08"},
      {{3, 3, 6, 3, 6, 6}, "o0161a0"}};
  for (const auto& [corners, counts] : cases) EXPECT_EQ(to_coco(polygon_mask(corners, 9, 7, "p")), counts);
}

TEST(PolygonMask, RefusesWhatIsNoPolygonOfTheImage) {
  const auto message = [](std::vector<double> corners) {
    return error_of([&] { polygon_mask(corners, 9, 7, "annotation 5"); });
  };
  EXPECT_TRUE(contains(message({1, 2, 3, 4}), "annotation 5"));
  EXPECT_TRUE(contains(message({1, 2, 3, 4, 5, 6, 7}), "3 corners"));
  EXPECT_TRUE(contains(message({1, 2, 3, 4, 1e9, 6}), "9×7"));
  EXPECT_TRUE(contains(message({1, 2, 3, 4, std::nan(""), 6}), "9×7"));
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

fs::path coco(const std::string& annotations) {
  const fs::path folder = testing::scratch_folder();
  fs::create_directories(folder / "images");
  image::write_png(folder / "images" / "a.png", image::make_image(4, 3, 3));
  write(folder / "set.json", R"({"images": [{"id": 7, "file_name": "a.png", "width": 4, "height": 3},
                                            {"id": 8, "file_name": "b.png", "width": 4, "height": 3}],
                                 "annotations": [)" +
                                 annotations + "]}");
  return folder / "set.json";
}

TEST(CocoInstances, HavePolygonsAndBothKindsOfRuns) {
  const auto dataset = open_instances(coco(
      R"({"id": 1, "image_id": 7, "iscrowd": 0, "segmentation": [[0, 0, 2, 0, 2, 2, 0, 2], [3, 0, 4, 0, 4, 3, 3, 3]]},
         {"id": 2, "image_id": 7, "segmentation": {"size": [3, 4], "counts": [1, 2, 9]}},
         {"id": 3, "image_id": 7, "segmentation": {"size": [3, 4], "counts": "129"}},
         {"id": 4, "image_id": 7, "iscrowd": 1, "segmentation": {"size": [3, 4], "counts": [1, 2, 9]}},
         {"id": 5, "image_id": 8, "segmentation": []})"));
  ASSERT_EQ(dataset->size(), 1);
  EXPECT_EQ(dataset->path(0).filename(), "a.png");
  EXPECT_EQ(dataset->left_out().crowds, 1);
  EXPECT_EQ(dataset->left_out().without_mask, 1);
  EXPECT_EQ(dataset->left_out().images, 1);
  const std::vector<Rle> masks = dataset->masks(0, 4, 3);
  ASSERT_EQ(masks.size(), 3u);
  EXPECT_EQ(area(masks[0]), 7);  // 2×2 and 1×3 pixels
  EXPECT_EQ(masks[1], masks[2]);
  EXPECT_TRUE(contains(error_of([&] { dataset->masks(0, 3, 4); }), "an image of 4×3"));
  EXPECT_TRUE(contains(summary(*dataset, "SET"), "1 crowd annotation, 1 annotation without a mask"));
}

// "iscrowd" is a number or a truth value.
TEST(CocoInstances, WhatIsLeftOutIsCounted) {
  const std::string polygon = R"("image_id": 7, "segmentation": [[0, 0, 2, 0, 2, 2, 0, 2]])";
  const auto dataset = open_instances(coco(R"({"id": 1, "iscrowd": 0, )" + polygon + R"(},
                                              {"id": 2, "iscrowd": false, )" +
                                           polygon + R"(},
                                              {"id": 3, "iscrowd": 1, )" +
                                           polygon + R"(},
                                              {"id": 4, "iscrowd": true, )" +
                                           polygon + R"(},
                                              {"id": 5, "image_id": 7}, {"id": 6, "image_id": 7},
                                              {"id": 7, "image_id": 7, "segmentation": []})"));
  EXPECT_EQ(dataset->masks(0, 4, 3).size(), 2u);
  EXPECT_EQ(dataset->left_out().crowds, 2);
  EXPECT_EQ(dataset->left_out().without_mask, 3);
  EXPECT_EQ(dataset->left_out().images, 1);
  EXPECT_EQ(summary(*dataset, "SET"),
            "1 image of SET (left out: 1 image without masks, 2 crowd annotations, 3 annotations without a mask)");
}

TEST(CocoInstances, RunsHaveThePixelsOfTheImage) {
  for (const auto& [counts, pixels] : {std::pair("[5, 6]", 11), std::pair("[5, 8]", 13)}) {
    const auto dataset = open_instances(
        coco(std::string(R"({"id": 6, "image_id": 7, "segmentation": {"size": [3, 4], "counts": )") + counts + "}}"));
    EXPECT_TRUE(contains(error_of([&] { dataset->masks(0, 4, 3); }),
                         "annotation 6: expected runs of 12 pixels, got " + std::to_string(pixels)));
  }
}

TEST(CocoInstances, ErrorsNameTheAnnotation) {
  for (const auto& [annotation, expected] :
       {std::pair{R"({"id": 1, "image_id": 9, "segmentation": [[0, 0, 2, 0, 2, 2]]})", "annotation 1"},
        {R"({"id": 1, "image_id": 7, "segmentation": {"size": [4, 3], "counts": [12]}})", "[3, 4]"},
        {R"({"id": 1, "image_id": 7, "segmentation": [["x"]]})", "a polygon"},
        {R"({"id": 1, "image_id": 7, "segmentation": {"size": [3, 4], "counts": [-1, 13]}})", "runs"},
        {R"({"image_id": 7})", "\"id\""}}) {
    const fs::path file = coco(annotation);
    const std::string message = error_of([&] { open_instances(file); });
    EXPECT_TRUE(contains(message, expected)) << message;
  }
  const auto late =
      open_instances(coco(R"({"id": 6, "image_id": 7, "segmentation": {"size": [3, 4], "counts": [5]}})"));
  EXPECT_TRUE(contains(error_of([&] { late->masks(0, 4, 3); }), "annotation 6"));
  const fs::path file = testing::scratch_folder() / "x.json";
  write(file, "{");
  EXPECT_TRUE(contains(error_of([&] { open_instances(file); }), "expected COCO's JSON, got line 1, column 2: "));
  write(file, R"({"images": [{"id": 1, "file_name": "no.png", "width": 4, "height": 3}], "annotations":
                  [{"id": 1, "image_id": 1, "segmentation": [[0, 0, 2, 0, 2, 2]]}]})");
  EXPECT_TRUE(contains(error_of([&] { open_instances(file); }), "no.png"));
}

TEST(InstanceDataset, WithoutAMaskIsAnErrorThatCountsTheImages) {
  const fs::path folder = testing::scratch_folder();
  const std::string expected = folder.string() + ": expected images with masks, got ";
  const auto message = [&](const fs::path& path) { return error_of([&] { open_instances(path); }); };
  EXPECT_EQ(message(folder), expected + "none");
  const auto add_image = [&](const std::string& name) { write(folder / name, "P6 4 3 255\n" + std::string(36, 'x')); };
  add_image("1.ppm");
  EXPECT_EQ(message(folder), expected + "1 image without masks");
  add_image("2.ppm");
  EXPECT_EQ(message(folder), expected + "2 images without masks");
  image::Image mask = image::make_image(4, 3, 1);
  mask.pixels[5] = 1;
  image::write_png(folder / "1.png", mask);
  EXPECT_EQ(summary(*open_instances(folder), "SET"), "1 image of SET (left out: 1 image without masks)");
  image::write_png(folder / "2.png", mask);
  EXPECT_EQ(summary(*open_instances(folder), "SET"), "2 images of SET");
  EXPECT_EQ(open_instances(folder, "train")->size(), 2) << "a folder without such a subfolder";
  EXPECT_TRUE(contains(message(folder / "1.ppm"), "(.json), got another file"));
  EXPECT_TRUE(contains(message(folder / "3.ppm"), "(.json), got nothing"));
}

TEST(InstanceFolder, ReadsNumberedAndSeparateMasks) {
  const fs::path folder = testing::scratch_folder();
  image::Image photo = image::make_image(4, 3, 3), numbers = image::make_image(4, 3, 1);
  numbers.pixels = {0, 1, 1, 0, 0, 0, 9, 9, 0, 0, 0, 9};
  image::write_png(folder / "other.png", photo);  // neither an image nor a mask
  for (const char* name : {"a.ppm", "c.ppm"}) write(folder / name, "P6 4 3 255\n" + std::string(36, 'x'));
  image::write_png(folder / "a.png", numbers);
  image::write_png(folder / "b.png", photo);
  fs::create_directories(folder / "b");
  image::write_png(folder / "b" / "cat.png", numbers);
  image::write_png(folder / "b" / "empty.png", image::make_image(4, 3, 1));
  const auto dataset = open_instances(folder, "train");
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->left_out().images, 2);
  EXPECT_EQ(dataset->path(0).filename(), "a.ppm");
  const std::vector<Rle> a = dataset->masks(0, 4, 3), b = dataset->masks(1, 4, 3);
  ASSERT_EQ(a.size(), 2u);
  EXPECT_EQ(area(a[0]), 2);
  EXPECT_EQ(area(a[1]), 3);
  ASSERT_EQ(b.size(), 1u);
  EXPECT_EQ(area(b[0]), 5);
  const std::string message = error_of([&] { dataset->masks(0, 5, 3); });
  EXPECT_TRUE(contains(message, "a.png") && contains(message, "5×3")) << message;
  EXPECT_TRUE(contains(error_of([&] { open_instances(folder / "nothing"); }), "a folder of images"));
  fs::create_directories(folder / "train" / "x");
  EXPECT_TRUE(contains(error_of([&] { open_instances(folder, "train"); }), "images with masks"));
}

void write_ppm(const fs::path& path, int64_t width, int64_t height) {
  write(path, "P6 " + std::to_string(width) + " " + std::to_string(height) + " 255\n" +
                  std::string(static_cast<size_t>(3 * width * height), 'x'));
}

// Colours are ordered by red, green and blue; every value of a channel is its own object.
TEST(InstanceFolder, NumbersOfObjectsAreColours) {
  const fs::path folder = testing::scratch_folder();
  write_ppm(folder / "a.ppm", 5, 1);
  image::Image colors = image::make_image(5, 1, 3);
  colors.pixels = {1, 0, 0, 0, 255, 255, 0, 0, 0, 0, 1, 0, 0, 0, 255};
  image::write_png(folder / "a.png", colors);
  const std::vector<Rle> masks = open_instances(folder)->masks(0, 5, 1);
  ASSERT_EQ(masks.size(), 4u);
  for (const auto& [object, x] : {std::pair<size_t, size_t>{0, 4}, {1, 3}, {2, 1}, {3, 0}}) {
    EXPECT_EQ(area(masks[object]), 1);
    EXPECT_EQ(decode(masks[object]).pixels[x], 1) << object;
  }
}

// A disc of this radius in the middle of a 64×64 mask, whose edge falls from 255 to 0 within `softness` pixels.
image::Image disc(double radius, double softness) {
  image::Image mask = image::make_image(64, 64, 1);
  for (int64_t y = 0; y < 64; ++y) {
    for (int64_t x = 0; x < 64; ++x) {
      const double outside = std::hypot(static_cast<double>(x) - 31.3, static_cast<double>(y) - 31.8) - radius;
      mask.row(y)[x] = static_cast<uint8_t>(std::clamp(127.5 - 255 * outside / softness, 0.0, 255.0));
    }
  }
  return mask;
}

// Interpolation and blurring leave grey levels at the edge, which are no objects.
TEST(InstanceFolder, MasksWithSoftEdgesAreRefused) {
  const fs::path folder = testing::scratch_folder();
  const auto masks_of = [&](const image::Image& mask, const std::string& name) {
    image::write_png(folder / name, mask);
    return open_instances(folder)->masks(0, 64, 64);
  };
  write_ppm(folder / "a.ppm", 64, 64);
  EXPECT_EQ(masks_of(disc(20, 1e-3), "a.png").size(), 1u);
  for (const auto& [radius, softness] : {std::pair(20.0, 2.0), {20.0, 30.0}, {8.0, 3.0}, {10.0, 18.0}}) {
    EXPECT_TRUE(contains(error_of([&, r = radius, s = softness] { masks_of(disc(r, s), "a.png"); }),
                         "a.png: expected objects of one colour each, or of two values"))
        << softness;
  }
  fs::remove(folder / "a.png");
  fs::create_directories(folder / "a");
  EXPECT_TRUE(contains(error_of([&] { masks_of(disc(20, 4), "a/cat.png"); }), "cat.png: expected objects of one"));
  EXPECT_EQ(masks_of(disc(20, 1e-3), "a/cat.png").size(), 1u);
}

// Masks of few grey levels are halved or drawn with smooth edges.  A border of its own label is an object.
TEST(InstanceFolder, FewLevelsOfGreyAreASoftEdgeIfTheyAreBetween) {
  const fs::path folder = testing::scratch_folder();
  write_ppm(folder / "a.ppm", 64, 64);
  const auto masks_of = [&](const image::Image& mask) {
    image::write_png(folder / "a.png", mask);
    return open_instances(folder)->masks(0, 64, 64).size();
  };
  for (const int levels : {2, 3, 4, 8}) {
    image::Image mask = disc(20, 5);
    for (uint8_t& value : mask.pixels) value = static_cast<uint8_t>(255 * (value * levels / 255) / levels);
    if (levels > 3) {
      EXPECT_TRUE(contains(error_of([&] { masks_of(mask); }), str("got ", levels, " colours with ", levels - 1)));
    } else {
      EXPECT_EQ(masks_of(mask), static_cast<size_t>(levels));
    }
  }
  image::Image lines = disc(20, 1e-3);
  for (int64_t i = 0; i < 4; ++i) std::fill_n(lines.row(2 * i), 40, static_cast<uint8_t>(50 * (i + 1)));
  EXPECT_EQ(masks_of(lines), 5u);
  for (int64_t x = 0; x < 64; ++x) lines.row(1)[x] = 20;  // between lines, but without a lighter object
  EXPECT_EQ(masks_of(lines), 6u);
}

// Cells of 3×3 pixels, lines, and objects of different sizes are no edges.
TEST(InstanceFolder, SmallAndThinObjectsAreNumbered) {
  const fs::path folder = testing::scratch_folder();
  write_ppm(folder / "a.ppm", 64, 64);
  image::Image cells = image::make_image(64, 64, 1), lines = cells;
  for (int64_t y = 0; y < 64; ++y) {
    for (int64_t x = 0; x < 64; ++x) {
      if (x % 4 < 3 && y % 8 < 3) cells.row(y)[x] = static_cast<uint8_t>(1 + x / 4 + 16 * (y / 8));
      if ((x + y) % 8 == 0) lines.row(y)[x] = static_cast<uint8_t>(1 + (x + y) / 8);
    }
  }
  image::write_png(folder / "a.png", cells);
  EXPECT_EQ(open_instances(folder)->masks(0, 64, 64).size(), 128u);
  image::write_png(folder / "a.png", lines);
  EXPECT_EQ(open_instances(folder)->masks(0, 64, 64).size(), 16u);
}

TEST(InstanceFolder, RefusesMasksThatAreNone) {
  const fs::path folder = testing::scratch_folder();
  const auto message = [&](int64_t width, int64_t height) {
    return error_of([&] { open_instances(folder)->masks(0, width, height); });
  };
  for (const int64_t height : {64, 65}) {  // 4096 colours, and more
    write_ppm(folder / "a.ppm", 64, height);
    image::Image colors = image::make_image(64, height, 3);
    for (int64_t i = 0; i < 64 * height; ++i) {
      colors.pixels[static_cast<size_t>(3 * i)] = 1;
      colors.pixels[static_cast<size_t>(3 * i + 1)] = static_cast<uint8_t>(i / 256);
      colors.pixels[static_cast<size_t>(3 * i + 2)] = static_cast<uint8_t>(i % 256);
    }
    image::write_png(folder / "a.png", colors);
    if (height == 64) {
      EXPECT_EQ(open_instances(folder)->masks(0, 64, height).size(), 4096u);
    } else {
      EXPECT_TRUE(contains(message(64, height), "a.png: expected numbers of objects, got more than 4096 different"));
    }
  }
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{65, 65}, {64, 64}})
    EXPECT_TRUE(contains(message(width, height), "a mask of the image's size " + std::to_string(width))) << width;
  std::fstream(folder / "a.png", std::ios::in | std::ios::out | std::ios::binary).seekp(24).put(16);  // the bit depth
  EXPECT_TRUE(contains(message(64, 65), "a mask of at most 8 bits per channel"));
}

// A PNG file is an image if a folder has its name, unless another file of its name is the image.
TEST(InstanceFolder, ImagesAreToldFromTheirMasks) {
  const fs::path folder = testing::scratch_folder();
  image::Image mask = image::make_image(4, 3, 1);
  mask.pixels[0] = 1;
  for (const char* name : {"in/a", "b"}) {
    fs::create_directories(folder / name);
    image::write_png(folder / name / "1.png", mask);
    image::write_png((folder / name).replace_extension(".png"), mask);
  }
  const auto own = open_instances(folder);
  ASSERT_EQ(own->size(), 2);
  EXPECT_EQ(own->path(0), folder / "b.png");
  EXPECT_EQ(own->path(1), folder / "in/a.png");
  write_ppm(folder / "b.ppm", 4, 3);
  const auto other = open_instances(folder);
  ASSERT_EQ(other->size(), 2);
  EXPECT_EQ(other->path(0), folder / "b.ppm");
  EXPECT_EQ(other->masks(0, 4, 3).size(), 1u);
  write(folder / "b.jpg", "x");
  const std::string message = error_of([&] { open_instances(folder); });
  EXPECT_TRUE(contains(message, "expected one image of this name beside its masks, got ")) << message;
  EXPECT_TRUE(contains(message, "b.jpg") && contains(message, "b.ppm")) << message;
}

}  // namespace
}  // namespace vitrail::sam
