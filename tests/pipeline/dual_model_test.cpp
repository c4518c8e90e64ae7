// SPDX-License-Identifier: Apache-2.0
// DualModel against the reference's embeddings and logits, and the program, whose results are the library's.
#include "vitrail/pipeline/dual_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "tests/apps/cli_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/analysis/knn.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

fs::path clip() { return fixture("models/hf_clip"); }

std::vector<std::string> texts_of(const std::string& name) {
  std::ifstream in(fixture("models/" + name + "/texts.json"));
  return nlohmann::json::parse(in).get<std::vector<std::string>>();
}
std::vector<std::string> clip_texts() { return texts_of("hf_clip"); }

class DualModels : public ::testing::TestWithParam<const char*> {
 protected:
  const DualModel model{fixture(str("models/", GetParam()))};
  const Golden golden = read_golden(fixture(str("models/", GetParam(), "/golden.safetensors")));
};

// From texts to embeddings: the tokenizer, the padding and the compiled tower.
TEST_P(DualModels, TextEmbeddingsEqualTheReference) {
  EXPECT_TRUE(close(model.embed_texts(texts_of(GetParam()), false), golden["text_embeds"], 1e-5, 1e-5));
}

TEST_P(DualModels, LogitsPerImageEqualTheReference) {
  const Tensor images = model.images().session().logits(golden["input"]);
  EXPECT_TRUE(close(images, golden["logits"], 1e-5, 1e-5));
  const Tensor logits = model.logits(images, model.embed_texts(texts_of(GetParam())));
  EXPECT_TRUE(close(logits, golden["logits_per_image"], 1e-4, 1e-5));
}

// The softmax over the texts for CLIP, each text's own sigmoid for SigLIP.
TEST_P(DualModels, ProbabilitiesAreTheFamilys) {
  const Tensor logits = Tensor::from<float>({1, 3}, {-1, 0.5F, 2});
  const Tensor probabilities = model.probabilities(logits);
  const bool clip = std::string(GetParam()) == "hf_clip";
  EXPECT_EQ(model.independent_scores(), !clip);
  const double sum = std::exp(-1) + std::exp(0.5) + std::exp(2);
  for (int64_t i = 0; i < 3; ++i) {
    const double logit = logits.data<float>()[i];
    EXPECT_NEAR(probabilities.data<float>()[i], clip ? std::exp(logit) / sum : 1 / (1 + std::exp(-logit)), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DualModels, ::testing::Values("hf_clip", "hf_siglip", "hf_siglip2"),
                         [](const auto& info) { return std::string(info.param); });

// The features of a dual model's images are the projected ones, of length 1 on request.
TEST(DualModel, EmbedOfItsImageTowerIsTheProjection) {
  const DualModel model(clip());
  const image::Image image = model.images().read(image_folder(1) / "a.png");
  const Tensor projected = model.images().embed(image);
  EXPECT_EQ(projected.shape(), (Shape{10}));
  EXPECT_TRUE(close(model.embed_image(image).select(0, 0), analysis::normalized_rows(projected), 1e-7));
  EXPECT_EQ(model.images().embed(image, {.final_norm = false}).shape(), (Shape{20})) << "unprojected";
  EXPECT_EQ(model.images().embed(image, {.layers = {0}}).shape(), (Shape{20}));
  const int64_t last = model.images().config().vit.depth - 1;
  EXPECT_TRUE(close(model.images().embed(image, {.layers = {last}}), projected, 0)) << "the last block by its number";
}

// OpenCLIP's way: normalise, mean, normalise.
TEST(DualModel, LabelsAreMeansOverTemplates) {
  const DualModel model(clip());
  const Tensor each = model.embed_texts({"a photo of a cat", "the cat"});
  Tensor mean = Tensor::zeros({1, 10});
  for (int64_t i = 0; i < 10; ++i) {
    mean.data<float>()[i] = (each.data<float>()[i] + each.data<float>()[10 + i]) / 2;
  }
  EXPECT_TRUE(close(model.embed_labels({"cat"}, {"a photo of a {}", "the {}"}), analysis::normalized_rows(mean), 1e-6));
}

// Each place of a template has the label, and what is around the places is kept.
TEST(DualModel, ALabelFillsEachPlaceOfATemplate) {
  const DualModel model(clip());
  for (const auto& [text, filled] : {std::pair("{} and {}", "cat and cat"), std::pair("{}{}", "catcat"),
                                     std::pair("a {}, the {} of {}s.", "a cat, the cat of cats.")}) {
    EXPECT_TRUE(close(model.embed_labels({"cat"}, {text}), model.embed_texts({filled}), 1e-6)) << text;
  }
  EXPECT_FALSE(close(model.embed_texts({"cat and cat"}), model.embed_texts({"cat and {}"}), 1e-6));
}

// Texts of different lengths share a batch: padding changes nothing.
TEST(DualModel, ATextHasTheSameEmbeddingAloneAndInABatch) {
  const DualModel model(clip());
  const Tensor together = model.embed_texts(clip_texts());
  for (size_t i = 0; i < clip_texts().size(); ++i) {
    const Tensor alone = model.embed_texts({clip_texts()[i]});
    EXPECT_TRUE(close(alone, together.narrow(0, static_cast<int64_t>(i), 1), 1e-6)) << i;
  }
}

// A copy of the fixture open_clip whose text tower has another option.
fs::path open_clip_with(const char* option, const nlohmann::json& value) {
  const fs::path folder = scratch_folder();
  fs::copy(fixture("models/open_clip"), folder);
  nlohmann::json config;
  std::ifstream(folder / "open_clip_config.json") >> config;
  config["model_cfg"]["text_cfg"][option] = value;
  std::ofstream(folder / "open_clip_config.json") << config;
  return folder;
}

TEST(DualModel, OpenClipsTextsAreCleaned) {
  const DualModel model(fixture("models/open_clip"));
  for (const auto& [text, clean] : {std::pair("it’s red", "it's red"), std::pair("a “red” dog", "a \"red\" dog"),
                                    std::pair("cats &amp; dogs", "cats & dogs"), std::pair("ﬁne red", "fine red"),
                                    std::pair("ＲＥＤ", "red"), std::pair("schÃ¶n", "schön")}) {
    EXPECT_TRUE(close(model.embed_texts({text}), model.embed_texts({clean}), 0)) << text;
  }
}

// A copy of a fixture with other tensors and another option of the text tower.
using Tensors = std::vector<std::pair<std::string, Tensor>>;
void replace_tensors(const fs::path& file, const std::function<void(Tensors&)>& change) {
  Tensors tensors;
  for (const auto& [name, tensor] : read_golden(file).tensors) tensors.emplace_back(name, tensor.clone());
  change(tensors);
  weights::write_safetensors(file, tensors);
}

// LayerScale of 1 changes nothing, another one does.
TEST(DualModel, OpenClipsTextTowerMayHaveLayerScale) {
  const Tensor plain = DualModel(fixture("models/open_clip")).embed_texts({"a cat"});
  for (const float scale : {1.F, 0.5F}) {
    const fs::path folder = open_clip_with("ls_init_value", 0.1);
    replace_tensors(folder / "open_clip_model.safetensors", [&](Tensors& tensors) {
      for (const char* layer : {"0.ls_1", "0.ls_2", "1.ls_1", "1.ls_2"})
        tensors.emplace_back(str("transformer.resblocks.", layer, ".gamma"), Tensor::full({18}, scale));
    });
    EXPECT_EQ(close(DualModel(folder).embed_texts({"a cat"}), plain, 1e-6), scale == 1) << scale;
  }
}

// Libraries make the rows of the token embedding a multiple of 64.
TEST(DualModel, AnEmbeddingMayHaveRowsOfNoToken) {
  const DualModel plain(fixture("models/open_clip"));
  const int64_t vocabulary = plain.text_config().vocab_size;
  for (const int64_t rows : {(vocabulary + 63) / 64 * 64, vocabulary + 128 + 8 - vocabulary % 8, vocabulary + 1}) {
    const fs::path folder = open_clip_with("vocab_size", rows);
    replace_tensors(folder / "open_clip_model.safetensors", [&](Tensors& tensors) {
      for (auto& [name, tensor] : tensors) {
        if (name == "token_embedding.weight") tensor = ops::cat({tensor, Tensor::zeros({rows - vocabulary, 18})}, 0);
      }
    });
    if (rows - vocabulary < 64 && rows % 64 == 0) {
      EXPECT_TRUE(close(DualModel(folder).embed_texts({"a cat"}), plain.embed_texts({"a cat"}), 0));
    } else {
      EXPECT_TRUE(contains(error_of([&] { DualModel model(folder); }), "the model's tokenizer")) << rows;
    }
  }
}

// Where what follows a text is seen, it is padded with 0 to the context, as by OpenCLIP.
TEST(DualModel, OpenClipsTextsArePaddedWhereItMatters) {
  for (const auto& [option, value] : {std::pair<const char*, nlohmann::json>("pool_type", "last"),
                                      std::pair<const char*, nlohmann::json>("no_causal_mask", true)}) {
    const fs::path folder = open_clip_with(option, value);
    const models::TextTower tower = models::build_text_tower(models::open_model(folder));
    const auto tokenizer = text::open_tokenizer(folder, text::ClipForm::open_clip);
    const int64_t context = tower.model.config().context_length;
    const std::vector<int64_t> text = tokenizer->encode("a photo of a cat", context);
    const Tensor ids = Tensor::zeros({1, context}, DType::i64);
    std::ranges::copy(text, ids.data<int64_t>());
    EXPECT_TRUE(close(DualModel(folder).embed_texts({"a photo of a cat"}, false), tower.model.forward(ids), 1e-5))
        << option;
  }
}

// OpenCLIP's canonicalize_text, for files that ask for it.
TEST(DualModel, OpenClipsTextsAreCanonicalIfItsTokenizerTakesThemSo) {
  const DualModel canonical(open_clip_with("tokenizer_kwargs", nlohmann::json::parse(R"({"clean": "canonicalize"})"))),
      plain(fixture("models/open_clip"));
  for (const auto& [text, same] : {std::pair("A cat, on snow!", "a cat on snow"), std::pair("a_cat", "a cat"),
                                   std::pair(" the\tcat's ( dog ) ", "the cats dog")}) {
    EXPECT_TRUE(close(canonical.embed_texts({text}), plain.embed_texts({same}), 1e-6)) << text;
    EXPECT_FALSE(close(plain.embed_texts({text}), plain.embed_texts({same}), 1e-6)) << text;
  }
  EXPECT_TRUE(contains(error_of([&] { canonical.embed_texts({"!?"}); }), "expected words"));
}

TEST(DualModel, CutsALongTextWithAWarning) {
  const DualModel model(clip());
  const Warnings warnings;
  std::string text = "a photo of a cat";
  for (int i = 0; i < 5; ++i) text += " " + text;
  model.embed_texts({text});
  EXPECT_TRUE(warnings.any("cut to the model's context of 24 tokens"));
}

// hf_clip with the first `context` of its positions.
fs::path clip_of_context(int64_t context) {
  const fs::path folder = with_config(
      "hf_clip", [&](nlohmann::json& config) { config["text_config"]["max_position_embeddings"] = context; });
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [name, tensor] : read_golden(folder / "model.safetensors").tensors) {
    const bool positions = name == "text_model.embeddings.position_embedding.weight";
    tensors.emplace_back(name, positions ? tensor.narrow(0, 0, context) : tensor);
  }
  weights::write_safetensors(folder / "model.safetensors", tensors);
  return folder;
}

// Also one that is no multiple of the lengths to which texts are padded.
TEST(DualModel, ATextIsCutToAContextOfAnyLength) {
  for (const int64_t context : {5, 12, 16, 23}) {
    const DualModel model(clip_of_context(context));
    ASSERT_EQ(model.text_config().context_length, context);
    std::string fitting;
    for (int64_t i = 0; i < context - 2; ++i) fitting += " a";  // with its start and end the whole context
    const Warnings warnings;
    const Tensor want = model.embed_texts({fitting});
    EXPECT_TRUE(warnings.messages.empty());
    EXPECT_TRUE(close(model.embed_texts({fitting + " cat"}), want, 1e-6)) << context;
    EXPECT_EQ(warnings.messages.size(), 1U);
  }
}

TEST(DualModel, TheTokensOfAllTextsOfAllCallsAreCounted) {
  const DualModel model(clip());
  const auto count = [&](const std::vector<std::string>& texts) {
    int64_t tokens = 0;
    model.embed_texts(texts, true, &tokens);
    return tokens;
  };
  EXPECT_EQ(count({"a"}), 3);  // with its start and end
  EXPECT_EQ(count({"a a a a"}), 6);
  EXPECT_EQ(count({"a a a a", "a", "a a"}), 6 + 3 + 4);
  EXPECT_EQ(count(std::vector<std::string>(70, "a")), 70 * 3);  // more than one pass
  int64_t tokens = 100;
  model.embed_texts({"a"}, true, &tokens);
  EXPECT_EQ(tokens, 103);
}

// The texts need several passes.
TEST(DualModel, EmbeddingsOfManyTextsAreInTheirOrder) {
  const DualModel model(clip());
  std::vector<std::string> texts;
  for (size_t i = 0; i < 130; ++i) texts.push_back(clip_texts()[i * 7 % clip_texts().size()]);
  const Tensor all = model.embed_texts(texts), few = model.embed_texts(clip_texts());
  ASSERT_EQ(all.size(0), 130);
  for (const int64_t i : {0, 63, 64, 127, 128, 129}) {
    const int64_t same = i * 7 % static_cast<int64_t>(clip_texts().size());
    EXPECT_TRUE(close(all.narrow(0, i, 1), few.narrow(0, same, 1), 1e-6)) << i;
  }
  std::vector<std::string> blank = texts;
  blank[100] = " ";
  EXPECT_TRUE(contains(error_of([&] { model.embed_texts(blank); }), "text 100: expected words"));
}

TEST(DualModel, ProgressIsReportedAfterEachPassAndMayEndTheWork) {
  const DualModel model(clip());
  std::vector<std::pair<int64_t, int64_t>> calls;
  const auto progress = [&](int64_t done, int64_t total) { calls.emplace_back(done, total); };
  model.embed_texts(std::vector<std::string>(130, "cat"), true, nullptr, progress);
  EXPECT_EQ(calls, (std::vector<std::pair<int64_t, int64_t>>{{64, 130}, {128, 130}, {130, 130}}));
  calls.clear();
  model.embed_labels({"cat", "dog"}, std::vector<std::string>(32, "a {}"), progress);
  EXPECT_EQ(calls, (std::vector<std::pair<int64_t, int64_t>>{{64, 64}}));
  const std::vector<std::string> with_blank_last = [] {
    std::vector<std::string> texts(64, "cat");
    texts.emplace_back(" ");
    return texts;
  }();
  const auto stop = [](int64_t, int64_t) { throw Error("stopped"); };
  EXPECT_EQ(error_of([&] { model.embed_texts(with_blank_last, true, nullptr, stop); }), "stopped");
}

TEST(DualModel, RefusesTextsWithoutWordsAndTemplatesWithoutAPlace) {
  const DualModel model(clip());
  const auto message_of = [&](const std::vector<std::string>& texts) {
    return error_of([&] { model.embed_texts(texts); });
  };
  EXPECT_TRUE(contains(message_of({}), "at least one text"));
  EXPECT_TRUE(contains(message_of({"a", ""}), "text 1: expected words, got \"\"")) << message_of({"a", ""});
  EXPECT_TRUE(contains(message_of({" \t"}), "expected words"));
  EXPECT_TRUE(contains(message_of({"\xff"}), "expected UTF-8"));
  EXPECT_TRUE(contains(error_of([&] { model.embed_labels({"cat"}, {"a photo"}); }), "{} where the label goes"));
}

TEST(DualModel, RefusesAnImageModelAloneAndTheTokenizerOfAnotherModel) {
  const std::string alone = error_of([] { DualModel(fs::path(small_model())); });
  EXPECT_TRUE(contains(alone, "expected a dual model with a text tower")) << alone;
  const std::string other = error_of([] { DualModel(clip(), {}, fixture("text/gemma/tokenizer.json")); });
  EXPECT_TRUE(contains(other, "the model's tokenizer, with ")) << other;
  EXPECT_TRUE(contains(other, "of another model")) << other;
  const fs::path without = scratch_folder();
  for (const char* file : {"config.json", "model.safetensors", "preprocessor_config.json"}) {
    fs::copy_file(clip() / file, without / file);
  }
  EXPECT_TRUE(contains(error_of([&] { DualModel{without}; }), "a tokenizer for texts"));
}

TEST(DualModel, ADualConfigurationWithoutTheTextTowersWeightsIsAnError) {
  const fs::path folder = scratch_folder();
  for (const char* file : {"config.json", "preprocessor_config.json", "vocab.json", "merges.txt"}) {
    fs::copy_file(clip() / file, folder / file);
  }
  fs::copy_file(fixture("models/hf_clip_vision_projection/model.safetensors"), folder / "model.safetensors");
  const std::string message = error_of([&] { DualModel{folder}; });
  EXPECT_TRUE(contains(message, "the tensors of a text tower beside the image tower's")) << message;
}

// OpenCLIP's projection behind a model of timm, the model's own head, or the attention pooling alone (SigLIP).
TEST(Model, EmbedOfOpenClipsTowersIsTheProjection) {
  for (const auto& [name, width] : {std::pair("open_clip_timm_linear", 10), std::pair("open_clip_timm_mlp", 10),
                                    std::pair("open_clip_eva02", 10), std::pair("open_clip_siglip", 24)}) {
    const Model model(fixture(str("models/", name)));
    const Golden golden = read_golden(fixture(str("models/", name, "/golden.safetensors")));
    EXPECT_TRUE(close(model.session().logits(golden["input"]), golden["logits"], 1e-5, 1e-5)) << name;
    const image::Image image = model.read(image_folder(1) / "a.png");
    EXPECT_EQ(model.embed(image).shape(), (Shape{width})) << name;
    EXPECT_TRUE(contains(error_of([&] { model.classify(image); }), "a model without a head")) << name;
  }
}

TEST(Model, AProjectionIsNoClassifier) {
  const Model model(clip());
  const image::Image image = model.read(image_folder(1) / "a.png");
  EXPECT_TRUE(contains(error_of([&] { model.classify(image); }), "zeroshot with the names of the classes"));
}

// The cosine of each pair, whatever the lengths: images are the rows, texts the columns.
TEST_P(DualModels, SimilaritiesAreCosinesAndLogitsAreScaledAndShifted) {
  const Tensor images = Tensor::from<float>({2, 2}, {3, 4, 0, -7}),
               texts = Tensor::from<float>({3, 2}, {10, 0, -6, 8, 0, 0.5F});
  const Tensor cosines = model.similarity(images, texts), logits = model.logits(images, texts);
  ASSERT_EQ(cosines.shape(), (Shape{2, 3}));
  EXPECT_TRUE(close(cosines, Tensor::from<float>({2, 3}, {0.6F, 0.28F, 0.8F, 0, -0.8F, -1}), 1e-6));
  // Two differences of the logits give the scale, and a cosine of 0 the bias.
  const double bias = logits.data<float>()[3], scale = bias - logits.data<float>()[5];
  EXPECT_GT(scale, 1);
  EXPECT_EQ(bias == 0, std::string(GetParam()) == "hf_clip");
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_NEAR(logits.data<float>()[i], scale * cosines.data<float>()[i] + bias, 1e-5 * scale);
}

// Each label has the mean of its own texts: labels are the rows, and the order of the templates does not matter.
TEST(DualModel, SeveralLabelsHaveTheirOwnMeans) {
  const DualModel model(clip());
  const Tensor both = model.embed_labels({"cat", "dog"}, {"a {}", "the {}", "{}s"});
  ASSERT_EQ(both.shape(), (Shape{2, 10}));
  for (const auto& [row, label] : {std::pair(0, "cat"), std::pair(1, "dog")}) {
    const Tensor alone = model.embed_labels({label}, {"{}s", "a {}", "the {}"});
    EXPECT_TRUE(close(both.narrow(0, row, 1), alone, 1e-6)) << label;
    double squares = 0;
    for (int64_t i = 0; i < 10; ++i) squares += std::pow(alone.data<float>()[i], 2);
    EXPECT_NEAR(squares, 1, 1e-5);
  }
  EXPECT_FALSE(close(both.narrow(0, 0, 1), both.narrow(0, 1, 1), 1e-3));
  EXPECT_TRUE(close(model.embed_labels({"cat"}), model.embed_texts({"cat"}), 0)) << "the labels are the texts";
  EXPECT_ERROR(error_of([&] { model.embed_labels({"cat"}, {"a {}", "a photo"}); }), "template", "\"a photo\"");
}

TEST(DualModel, EmbeddingsHaveLengthOneUnlessToldOtherwise) {
  const DualModel model(clip());
  const auto length = [](const Tensor& row) {
    double squares = 0;
    for (int64_t i = 0; i < row.numel(); ++i) squares += std::pow(row.data<float>()[i], 2);
    return std::sqrt(squares);
  };
  const Tensor plain = model.embed_texts({"a cat"}, false);
  EXPECT_NEAR(length(model.embed_texts({"a cat"})), 1, 1e-6);
  EXPECT_GT(std::abs(length(plain) - 1), 1e-3);
  EXPECT_TRUE(close(model.embed_texts({"a cat"}), analysis::normalized_rows(plain), 1e-6));
  const fs::path folder = image_folder(2);
  const image::Image a = model.images().read(folder / "a.png"), b = model.images().read(folder / "b.png");
  const std::vector<image::ImageView> views{a, b};
  const Tensor images = model.embed_images(views);
  ASSERT_EQ(images.shape(), (Shape{2, 10}));
  EXPECT_NEAR(length(images.select(0, 1)), 1, 1e-6);
  EXPECT_TRUE(close(images.narrow(0, 1, 1), model.embed_image(b), 1e-6));
  EXPECT_FALSE(close(images.narrow(0, 0, 1), images.narrow(0, 1, 1), 1e-4));
}

// The text tower has the precision of the options, as the image tower.
TEST(DualModel, ThePrecisionIsThatOfBothTowers) {
  const DualModel fp32(clip()), half(clip(), {.precision = kernels::Precision::half});
  const Tensor exact = fp32.embed_texts({"a photo of a cat"}), rounded = half.embed_texts({"a photo of a cat"});
  EXPECT_FALSE(close(rounded, exact, 0));
  EXPECT_TRUE(close(rounded, exact, 0.05));
  EXPECT_EQ(half.images().session().precision(), kernels::Precision::half);
}

TEST(DualModel, RefusesATokenizerThatDoesNotFit) {
  const fs::path other_end =
      with_config("hf_clip", [](nlohmann::json& config) { config["text_config"]["eos_token_id"] = 700; });
  EXPECT_ERROR(error_of([&] { DualModel{other_end}; }), other_end.string(), "one whose is 757");
  const fs::path smaller =
      with_config("hf_clip", [](nlohmann::json& config) { config["text_config"]["vocab_size"] = 757; });
  EXPECT_ERROR(error_of([&] { DualModel{smaller}; }), smaller.string(), "one with 758, of another model");
}

// The tokenizer of another folder, which the model's own lacks.
TEST(DualModel, TakesTheTokenizerThatIsNamed) {
  const fs::path without = scratch_folder();
  for (const char* file : {"config.json", "model.safetensors", "preprocessor_config.json"})
    fs::copy_file(clip() / file, without / file);
  const DualModel own(clip()), named(without, {}, clip());
  EXPECT_TRUE(close(named.embed_texts(clip_texts()), own.embed_texts(clip_texts()), 0));
}

}  // namespace
}  // namespace vitrail::testing
