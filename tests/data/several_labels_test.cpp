// SPDX-License-Identifier: Apache-2.0
// CSV lists of images with several labels, and their batches.
#include "tests/data/support.h"
#include "vitrail/data/datasets/dataset.h"
#include "vitrail/data/datasets/holdout_split.h"
#include "vitrail/data/loader/decoded_cache.h"
#include "vitrail/data/loader/loader.h"

namespace vitrail::data {
namespace {

using Names = std::vector<std::string>;
using Labels = std::vector<int64_t>;

class SeveralLabels : public ::testing::Test {
 protected:
  std::unique_ptr<Dataset> open(const std::string& text, const DatasetOptions& options = {}) const {
    write_file(root_ / "l.csv", text);
    return open_dataset(root_ / "l.csv", options);
  }
  std::string refusal(const std::string& text, const DatasetOptions& options = {}) const {
    return error_of([&] { open(text, options); });
  }
  const fs::path root_ = testing::scratch_folder();
};

TEST_F(SeveralLabels, AreSeparatedOrHaveAColumnEach) {
  for (const std::string text :
       {"a.png,dog|cat\nb.png,bird\nc.png,\n", "file,label\na.png,cat | dog\nb.png,bird\nc.png,\n",
        "file,labels\na.png,cat;dog;cat\nb.png,bird\nc.png,\n", "image;tags\na.png;cat,dog\nb.png;bird\nc.png;\n",
        "filename,bird,cat,dog\na.png,0,1,1\nb.png,1,0,0\nc.png,0,0,0\n",
        "split,image_id,bird,cat,dog\ntrain,a.png,0.0,1.0,True\nval,b.png,1,0,0\nval,c.png,false,0,0\n"}) {
    const auto dataset = open(text, {.split = "."});
    ASSERT_TRUE(dataset->is_multi_label()) << text;
    ASSERT_EQ(dataset->size(), 3) << text;
    EXPECT_EQ(dataset->class_names(), (Names{"bird", "cat", "dog"})) << text;
    EXPECT_EQ(dataset->labels(0), (Labels{1, 2})) << text;
    EXPECT_EQ(dataset->labels(1), (Labels{0})) << text;
    EXPECT_EQ(dataset->labels(2), (Labels{})) << text;
    EXPECT_EQ(dataset->path(1), (root_ / "b.png").string()) << text;
    EXPECT_TRUE(contains(error_of([&] { dataset->label(0); }), "a.png: expected one label per image")) << text;
    EXPECT_EQ(summary(*dataset, "l.csv"), "3 images of l.csv, with several labels each, 3 classes: bird, cat, dog");
  }
}

TEST_F(SeveralLabels, AreThoseOfTheModelByNameOrIndex) {
  const DatasetOptions options{.labels = {"dog, hound", "x", "cat"}};
  for (const std::string text : {"a.png,dog|cat\n", "a.png,2|0\n", "file,cat,hound\na.png,1,1\n"}) {
    const auto dataset = open(text, options);
    EXPECT_EQ(dataset->labels(0), (Labels{0, 2})) << text;
    EXPECT_EQ(dataset->class_names(), options.labels);
  }
  EXPECT_TRUE(contains(refusal("a.png,dog|wolf\n", options), "'wolf'"));
  EXPECT_TRUE(contains(refusal("a.png,0|3\n", options), "class indices, or class names of the model, got '0', '3'"));
  EXPECT_TRUE(contains(refusal("file,cat,wolf\na.png,1,1\n", options), "wolf"));
}

TEST_F(SeveralLabels, OfOneRowMakeTheWholeListSuch) {
  const auto dataset = open("a.png,dog\nb.png,cat|dog\n");
  EXPECT_EQ(dataset->labels(0), (Labels{1}));
  EXPECT_FALSE(open("a.png,dog\nb.png,cat\n")->is_multi_label());
  EXPECT_FALSE(open("file,class\na.png,\"tench, Tinca tinca\"\nb.png,cat\n")->is_multi_label());
  EXPECT_FALSE(open("file,labels\na.png,dog\nb.png,cat\n")->is_multi_label());
}

TEST_F(SeveralLabels, MustBeWhatIsAskedFor) {
  const std::string one = "a.png,dog\nb.png,cat\n", several = "a.png,dog|cat\n";
  EXPECT_EQ(open(one, {.multi_label = true})->labels(1), (Labels{0}));
  EXPECT_TRUE(contains(refusal(several, {.multi_label = false}), "expected a dataset of one label per image"));
  EXPECT_TRUE(contains(refusal("file,a,b\na.png,1,0\n", {.multi_label = false}), "one label per image, got several"));
  EXPECT_TRUE(
      contains(refusal("file,labels\na.png,dog;cat\n", {.multi_label = false}), "label per image, got several"));
  const std::string comma = "file,labels\na.png,\"tench, Tinca tinca\"\n";
  EXPECT_EQ(open(comma, {.labels = {"tench, Tinca tinca"}, .multi_label = false})->label(0), 0);
  EXPECT_TRUE(contains(refusal(comma, {.multi_label = false}), "label per image, got several")) << "as without it";
  place_images(root_ / "folders", {"cat/a.png", "dog/b.png"});
  EXPECT_TRUE(contains(error_of([&] { open_dataset(root_ / "folders", {.multi_label = true}); }),
                       "expected a dataset of several labels per image"));
}

TEST_F(SeveralLabels, OfABadRowAreAnErrorThatNamesItsLine) {
  EXPECT_TRUE(contains(refusal("file,cat,dog\na.png,1,0\nb.png,2,0\n"), "l.csv:3: expected 0 or 1 for the class cat"));
  EXPECT_TRUE(contains(refusal("file,cat,dog\na.png,1,0\nb.png,1\n"), "l.csv:3"));
}

TEST_F(SeveralLabels, BecomeTargetsOfZeroAndOne) {
  place_images(root_, {"a.png", "b.png", "d.png"});
  const std::shared_ptr<const Dataset> dataset =
      open("a.png,dog|cat\ngone.png,bird|dog\nb.png,bird\nd.png,\n", {.multi_label = true});
  LoaderOptions options{.batch_size = 4, .shuffle = false, .classes = 3, .unreadable = Unreadable::leave_out};
  options.transform.size = {4, 4};
  for (const auto& source : {dataset, cache_decoded(dataset, 1 << 20)}) {
    Loader loader(source, options);
    loader.start(0);
    const auto batch = loader.next();
    ASSERT_TRUE(batch && batch->targets.defined());
    ASSERT_EQ(batch->targets.shape(), Shape({3, 3}));
    const Tensor targets = batch->targets.contiguous();
    EXPECT_EQ((std::vector<float>{targets.data<float>(), targets.data<float>() + 9}),
              (std::vector<float>{0, 1, 1, 1, 0, 0, 0, 0, 0}));
    EXPECT_EQ(batch->labels.data<int64_t>()[0], -1);
  }
}

TEST_F(SeveralLabels, AreRefusedWhereEachImageNeedsOne) {
  const std::shared_ptr<const Dataset> dataset = open("a.png,dog|cat\nb.png,cat\n");
  LoaderOptions options{.batch_size = 2, .classes = 2};
  options.balance = true;
  EXPECT_TRUE(contains(error_of([&] { Loader(dataset, options); }), "loader.balance: expected false"));
  options.balance = false;
  options.mix = {.mixup_alpha = 1, .classes = 2};
  EXPECT_TRUE(contains(error_of([&] { Loader(dataset, options); }), "loader.mix: expected neither"));
  options.mix = {};
  options.classes = 1;
  EXPECT_TRUE(contains(error_of([&] { Loader(dataset, options); }), "loader.classes: expected more than the label 1"));
}

TEST_F(SeveralLabels, AreHeldOutAtRandom) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += std::to_string(i) + ".png,a|b\n";
  const auto dataset = open(text);
  const HoldoutSplit split = holdout_split(*dataset, 10, 3);
  EXPECT_EQ(split.held_out.size(), 10u);
  EXPECT_EQ(split.train.size(), 30u);
  EXPECT_EQ(holdout_split(*dataset, 10, 3).held_out, split.held_out);
  EXPECT_NE(holdout_split(*dataset, 10, 4).held_out, split.held_out);
}

}  // namespace
}  // namespace vitrail::data
