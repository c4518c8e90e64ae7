// SPDX-License-Identifier: Apache-2.0
// MNIST, CIFAR-10 and ImageNet images in the shared assets, as torchvision and Pillow read them
// (tools/golden/data_sets.py).
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/data/support.h"
#include "vitrail/data/datasets/dataset.h"
#include "vitrail/data/datasets/imagenet_labels.h"
#include "vitrail/data/loader/ordered_prefetch.h"

namespace vitrail::data {
namespace {

using nlohmann::json;

json golden(const char* name) { return json::parse(std::ifstream(testing::fixture("data/sets.json"))).at(name); }

int64_t pixel_sum(const image::Image& image) {
  return std::accumulate(image.pixels.begin(), image.pixels.end(), int64_t{0});
}

TEST(RealDatasets, MnistAsTorchvisionReadsIt) {
  VITRAIL_NEED_ASSETS(root);
  const json expected = golden("mnist");
  const auto dataset = open_dataset(root / "mnist", {.decode = {.mode = image::ColorMode::grey}});
  ASSERT_EQ(dataset->size(), expected["size"]);
  EXPECT_EQ(dataset->class_names().size(), 10u);
  for (size_t i = 0; i < expected["labels"].size(); ++i) {
    EXPECT_EQ(dataset->label(i), expected["labels"][i]);
    EXPECT_EQ(pixel_sum(dataset->image(i)), expected["pixel_sums"][i]);
  }
  const image::Image first = dataset->image(0);
  for (int x = 0; x < 28; ++x) EXPECT_EQ(first.row(14)[x], expected["row_14_of_first"][x]);
  EXPECT_EQ(open_dataset(root / "mnist", {.split = "train"})->size(), 60000);
}

TEST(RealDatasets, CifarsArchiveAsTorchvisionReadsTheUnpackedFolder) {
  VITRAIL_NEED_ASSETS(root);
  const json expected = golden("cifar_zip");
  const auto dataset = open_dataset(root / "cifar10/cifar10_jpeg.zip", {});
  ASSERT_EQ(dataset->size(), expected["size"]);
  EXPECT_EQ(dataset->class_names(), expected["classes"].get<std::vector<std::string>>());
  for (const auto& [index, picked] : expected["picked"].items()) {
    const Sample sample = dataset->get(std::stoll(index));
    EXPECT_TRUE(sample.path.ends_with("cifar10_jpeg.zip/" + picked["path"].get<std::string>())) << sample.path;
    EXPECT_EQ(sample.label, picked["label"]);
    EXPECT_EQ(pixel_sum(sample.image), picked["pixel_sum"]) << sample.path;
  }
  EXPECT_EQ(open_dataset(root / "cifar10/cifar10_jpeg.zip", {.split = "train"})->size(), 50000);
}

TEST(RealDatasets, LabelsInAnotherOrderRenumberCifarsFolders) {
  VITRAIL_NEED_ASSETS(root);
  const DatasetOptions reversed{
      .labels = {"truck", "ship", "horse", "frog", "dog", "deer", "cat", "bird", "automobile", "airplane, aeroplane"}};
  const auto dataset = open_dataset(root / "cifar10/cifar10_jpeg.zip", reversed);
  EXPECT_EQ(dataset->label(0), 9);
  EXPECT_EQ(dataset->label(9999), 0);
}

TEST(RealDatasets, TheImageNetCsvGivesItsLabels) {
  VITRAIL_NEED_ASSETS(root);
  const json expected = golden("nips_csv");
  const auto names = imagenet_class_names();
  const auto dataset = open_dataset(root / "images/nips2017/labels.csv", {.labels = {names.begin(), names.end()}});
  ASSERT_EQ(dataset->size(), static_cast<int64_t>(expected["files"].size()));
  for (int64_t i = 0; i < dataset->size(); ++i) {
    EXPECT_TRUE(dataset->path(i).ends_with(expected["files"][i].get<std::string>()));
    EXPECT_EQ(dataset->label(i), expected["labels"][i]);
  }
  EXPECT_EQ(pixel_sum(dataset->image(0)), expected["first_pixel_sum"]);
}

TEST(RealDatasetsConcurrent, PrefetchDecodesCifarInOrder) {
  VITRAIL_NEED_ASSETS(root);
  const auto dataset = open_dataset(root / "cifar10/cifar10_jpeg.zip", {});
  OrderedPrefetch<Sample> samples(500, [&](size_t i) { return dataset->get(19 * i); }, {.threads = 3, .in_flight = 8});
  for (int64_t i = 0; i < 500; ++i) {
    const auto sample = samples.next();
    EXPECT_EQ(sample->path, dataset->path(19 * i));
    EXPECT_EQ(sample->label, dataset->label(19 * i));
    EXPECT_EQ(sample->image.width, 32);
  }
}

}  // namespace
}  // namespace vitrail::data
