// SPDX-License-Identifier: Apache-2.0
// transformers' preprocessor_config.json: each processor's defaults, its fields, and the file that is written.
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/models/config_formats_internal.h"

namespace vitrail::models {
namespace {

using Size = std::optional<std::array<int64_t, 2>>;
using Numbers = std::vector<double>;
using testing::error_of;

// model: fields of config.json.
Preprocessing read_processor(const std::string& fields, int64_t channels = 3, const std::string& model = "") {
  VisionTransformerConfig vit;
  vit.img_size = {64, 80};
  vit.in_chans = channels;
  const Json config = Json::parse("{" + model + "}");
  return read_preprocessor(Json::parse("{" + fields + "}"), JsonFields(config, "config.json"), vit, "file");
}

std::string processor_error(const std::string& fields) {
  return error_of([&] { read_processor(fields); });
}

// The class attributes of transformers.
TEST(ProcessorConfig, EveryProcessorHasItsDefaults) {
  const Numbers half{0.5, 0.5, 0.5}, zero{0, 0, 0}, one{1, 1, 1};
  const Numbers clip_mean{0.48145466, 0.4578275, 0.40821073}, clip_std{0.26862954, 0.26130258, 0.27577711};
  const Numbers imagenet_mean{0.485, 0.456, 0.406}, imagenet_std{0.229, 0.224, 0.225};
  struct Case {
    const char *name, *filter;
    int64_t size;
    bool shortest, crop;
    const Numbers &mean, &std;
  };
  const Case cases[] = {{"ViT", "bilinear", 224, false, false, half, half},
                        {"DeiT", "bicubic", 256, false, true, half, half},
                        {"Beit", "bicubic", 224, false, false, half, half},
                        {"Siglip", "bicubic", 224, false, false, half, half},
                        {"Blip", "bicubic", 384, false, false, clip_mean, clip_std},
                        {"Bit", "bicubic", 224, true, true, clip_mean, clip_std},
                        {"CLIP", "bicubic", 224, true, true, clip_mean, clip_std},
                        {"ChineseCLIP", "bicubic", 224, true, true, clip_mean, clip_std},
                        {"DINOv3ViT", "bilinear", 224, false, false, imagenet_mean, imagenet_std},
                        {"Tipsv2", "bilinear", 448, false, false, zero, one}};
  for (const Case& one_case : cases) {
    for (const char* ending : {"ImageProcessor", "ImageProcessorFast", "ImageProcessorPil", "FeatureExtractor"}) {
      const std::string name = std::string(one_case.name) + ending;
      const Preprocessing got = read_processor("\"image_processor_type\": \"" + name + "\"");
      EXPECT_EQ(got.rule, ResizeRule::huggingface) << name;
      EXPECT_EQ(got.interpolation, one_case.filter) << name;
      const Size square{{one_case.size, one_case.size}}, cropped{{224, 224}};
      EXPECT_EQ(got.resize_to, one_case.shortest ? Size() : square) << name;
      EXPECT_EQ(got.resize_shortest, one_case.shortest ? std::optional(one_case.size) : std::nullopt) << name;
      EXPECT_EQ(got.center_crop, one_case.crop ? cropped : Size()) << name;
      EXPECT_EQ(got.input_size, one_case.crop ? cropped : square) << name;
      EXPECT_EQ(got.mean, one_case.mean) << name;
      EXPECT_EQ(got.std, one_case.std) << name;
      EXPECT_EQ(got.resize_floats, std::string(one_case.name) == "DINOv3ViT") << name;
      EXPECT_EQ(got.rescale_factor, 1.0 / 255) << name;
    }
  }
  const Preprocessing convnext = read_processor(R"("image_processor_type": "ConvNextImageProcessor")");
  EXPECT_EQ(convnext.interpolation, "bicubic");
  EXPECT_EQ(convnext.resize_to, (Size{{384, 384}}));
  EXPECT_FALSE(convnext.resize_shortest);
  EXPECT_FALSE(convnext.center_crop);
  EXPECT_EQ(convnext.mean, half);
}

TEST(ProcessorConfig, WithoutATypeNothingIsAssumed) {
  const Preprocessing got = read_processor("");
  EXPECT_EQ(got.interpolation, "bilinear") << "not used without a resize";
  EXPECT_FALSE(read_processor("\"size\": 32").interpolation) << "transformers' filter depends on the class";
  EXPECT_EQ(read_processor(R"("size": 32, "resample": 3)").interpolation, "bicubic");
  EXPECT_FALSE(got.resize_to);
  EXPECT_FALSE(got.resize_shortest);
  EXPECT_FALSE(got.center_crop);
  EXPECT_EQ(got.input_size, (Size{{64, 80}})) << "the model's";
  EXPECT_FALSE(got.mean);
  EXPECT_FALSE(got.std);
  EXPECT_FALSE(got.resize_floats);
  EXPECT_EQ(read_processor(R"("crop_size": 32)").center_crop, (Size{{32, 32}})) << "it crops if it has a size for that";
  EXPECT_FALSE(read_processor(R"("crop_size": 32, "do_center_crop": false)").center_crop);
  EXPECT_FALSE(read_processor(R"("do_center_crop": true)").center_crop) << "to no size";
}

TEST(ProcessorConfig, FieldsReplaceTheDefaults) {
  const std::string clip = R"("image_processor_type": "CLIPImageProcessor", )";
  EXPECT_EQ(read_processor(clip + R"("resample": 0)").interpolation, "nearest");
  EXPECT_FALSE(read_processor(clip + R"("do_resize": false)").resize_shortest);
  EXPECT_FALSE(read_processor(clip + R"("do_center_crop": false)").center_crop);
  EXPECT_EQ(read_processor(clip + R"("size": [32, 48])").resize_to, (Size{{32, 48}}));
  EXPECT_FALSE(read_processor(clip + R"("size": [32, 48])").resize_shortest);
  EXPECT_EQ(read_processor(clip + R"("size": {"height": 32, "width": 48})").resize_to, (Size{{32, 48}}));
  EXPECT_EQ(read_processor(clip + R"("size": {"shortest_edge": 32, "width": 48})").resize_shortest, 32);
  const Preprocessing both = read_processor(clip + R"("size": {"shortest_edge": 32, "longest_edge": 40})");
  EXPECT_EQ(both.resize_shortest, 32);
  EXPECT_EQ(both.resize_longest, 40);
  EXPECT_FALSE(read_processor(clip + R"("size": {"shortest_edge": 32})").resize_longest);
  EXPECT_EQ(read_processor(clip + R"("crop_size": {"height": 30, "width": 20})").center_crop, (Size{{30, 20}}));
  EXPECT_EQ(read_processor(clip + R"("crop_size": [30, 20])").input_size, (Size{{30, 20}}));
  EXPECT_EQ(read_processor(clip + R"("do_rescale": false)").rescale_factor, 1);
  EXPECT_EQ(read_processor(clip + R"("do_rescale": false, "rescale_factor": 0.5)").rescale_factor, 1);
  EXPECT_EQ(read_processor(clip + R"("rescale_factor": 0.5)").rescale_factor, 0.5);
  EXPECT_EQ(read_processor(clip + R"("image_mean": [0.1, 0.2, 0.3])").mean, (Numbers{0.1, 0.2, 0.3}));
  EXPECT_EQ(read_processor(clip + R"("image_mean": [0.1, 0.2, 0.3])").std,
            (Numbers{0.26862954, 0.26130258, 0.27577711}));
  EXPECT_EQ(read_processor(clip + R"("image_std": [0.1, 0.2, 0.3])").std, (Numbers{0.1, 0.2, 0.3}));
  const Preprocessing raw = read_processor(clip + R"("do_normalize": false)", 1);
  EXPECT_EQ(raw.mean, (Numbers{0}));
  EXPECT_EQ(raw.std, (Numbers{1}));
  // The first of the two names has precedence.
  EXPECT_EQ(
      read_processor(R"("image_processor_type": "BlipImageProcessor", "feature_extractor_type": "ViTFeatureExtractor")")
          .resize_to,
      (Size{{384, 384}}));
}

// transformers' AutoImageProcessor.  For parts of models, which it does not know, the processor of the whole.
TEST(ProcessorConfig, WithoutATypeTheModelsTypeDeterminesIt) {
  const std::pair<const char*, const char*> known[] = {{"vit", "ViT"},
                                                       {"vit_mae", "ViT"},
                                                       {"vit_msn", "ViT"},
                                                       {"ijepa", "ViT"},
                                                       {"deit", "DeiT"},
                                                       {"beit", "Beit"},
                                                       {"dinov2", "Bit"},
                                                       {"data2vec-vision", "Beit"},
                                                       {"dinov2_with_registers", "Bit"},
                                                       {"clip", "CLIP"},
                                                       {"clip_vision_model", "CLIP"},
                                                       {"metaclip_2", "CLIP"},
                                                       {"aimv2", "CLIP"},
                                                       {"aimv2_vision_model", "CLIP"},
                                                       {"metaclip_2_vision_model", "CLIP"},
                                                       {"siglip", "Siglip"},
                                                       {"siglip_vision_model", "Siglip"},
                                                       {"tipsv2_vision_model", "Tipsv2"},
                                                       {"dinov3_vit", "DINOv3ViT"}};
  for (const auto& [model_type, name] : known) {
    const Preprocessing got = read_processor("", 3, str("\"model_type\": \"", model_type, "\""));
    const Preprocessing want = read_processor(str("\"image_processor_type\": \"", name, "ImageProcessor\""));
    EXPECT_EQ(write_preprocessor_config(got), write_preprocessor_config(want)) << model_type;
  }
  const std::string clip = R"("model_type": "clip")";
  const Preprocessing old = read_processor(R"("size": 32, "crop_size": 30)", 3, clip);
  EXPECT_EQ(old.resize_shortest, 32) << "what an integer means to CLIP";
  EXPECT_EQ(old.interpolation, "bicubic");
  EXPECT_EQ(old.center_crop, (Size{{30, 30}}));
  EXPECT_FALSE(read_processor("\"crop_size\": 32", 3, R"("model_type": "vit")").center_crop) << "ViT's does not crop";
  EXPECT_EQ(read_processor(R"("image_processor_type": "ViTImageProcessor")", 3, clip).interpolation, "bilinear");
  EXPECT_EQ(read_processor("", 3, R"("image_processor_type": "DeiTImageProcessor", "model_type": "vit")").resize_to,
            (Size{{256, 256}}));
  EXPECT_FALSE(read_processor("\"size\": 32", 3, R"("model_type": "internvl_vision")").interpolation);
  EXPECT_TRUE(error_of([] {
                read_processor("", 3, R"("image_processor_type": "X")");
              }).starts_with("config.json: image_processor_type: expected one of ViTImageProcessor"));
}

// Both backends of transformers 5.24 do so.
TEST(ProcessorConfig, NullTurnsAStepOff) {
  const std::string clip = R"("image_processor_type": "CLIPImageProcessor", )";
  EXPECT_FALSE(read_processor(clip + "\"do_resize\": null").resize_shortest);
  EXPECT_FALSE(read_processor(clip + "\"do_center_crop\": null").center_crop);
  EXPECT_EQ(read_processor(clip + "\"do_rescale\": null").rescale_factor, 1);
  EXPECT_EQ(read_processor(clip + "\"do_normalize\": null").mean, (Numbers{0, 0, 0}));
  EXPECT_EQ(read_processor(clip + "\"do_normalize\": null").std, (Numbers{1, 1, 1}));
  EXPECT_EQ(read_processor(clip + R"("size": null, "crop_size": null, "resample": null)").center_crop,
            (Size{{224, 224}}))
      << "other fields have their defaults";
}

// transformers takes a number for all channels.
TEST(ProcessorConfig, StatisticsMayBeOneNumber) {
  const Preprocessing got = read_processor(R"("image_mean": 0.5, "image_std": 0.25)");
  EXPECT_EQ(got.mean, Numbers{0.5});
  EXPECT_EQ(got.std, Numbers{0.25});
  EXPECT_EQ(read_processor(R"("image_mean": 0, "image_std": 1)").mean, Numbers{0});
  EXPECT_ERROR(processor_error(R"("image_mean": "0.5")"), "file: image_mean", "\"0.5\"");
}

TEST(ProcessorConfig, ConvNextsCropIsOfItsFraction) {
  const std::string type = R"("image_processor_type": "ConvNextImageProcessor", )";
  const Preprocessing half = read_processor(type + R"("size": {"shortest_edge": 100}, "crop_pct": 0.5)");
  EXPECT_EQ(half.resize_shortest, 200);
  EXPECT_EQ(half.center_crop, (Size{{100, 100}}));
  EXPECT_EQ(half.input_size, (Size{{100, 100}}));
  EXPECT_EQ(read_processor(type + R"("size": 100, "crop_pct": 1)").resize_shortest, 100)
      << "an integer is the shortest edge";
  EXPECT_EQ(read_processor(type + R"("size": 100, "crop_pct": 0.01)").resize_shortest, 10000);
  EXPECT_EQ(read_processor(type + R"("size": 100, "do_center_crop": true, "crop_size": 60)").center_crop,
            (Size{{60, 60}}));
  EXPECT_EQ(read_processor(type + R"("size": {"height": 10, "width": 20})").resize_to, (Size{{10, 20}}));
  EXPECT_FALSE(read_processor(type + R"("size": {"shortest_edge": 100, "longest_edge": 120})").resize_longest)
      << "its resize ignores the limit";
  EXPECT_ERROR(processor_error(type + R"("size": 100, "crop_pct": 1.5)"), "file: crop_pct", "1.5");
  EXPECT_ERROR(processor_error(type + R"("size": 100, "crop_pct": 0)"), "file: crop_pct", "0");
}

TEST(ProcessorConfig, ErrorsNameTheirFields) {
  EXPECT_ERROR(processor_error(R"("image_processor_type": "Owlv2ImageProcessor")"), "file: image_processor_type",
               "\"Owlv2ImageProcessor\"");
  EXPECT_TRUE(processor_error(R"("feature_extractor_type": "XFeatureExtractor")")
                  .starts_with("file: feature_extractor_type: expected one of ViTImageProcessor"));
  EXPECT_ERROR(processor_error(R"("size": {"longest_edge": 5})"), "file: size", "{\"longest_edge\":5}");
  EXPECT_ERROR(processor_error(R"("size": {"height": 5})"), "file: size", "{\"height\":5}");
  for (const char* number : {"-1", "6"}) {
    EXPECT_EQ(processor_error(str("\"resample\": ", number)),
              str("file: resample: expected a value of Pillow's Image.Resampling, 0 to 5, got ", number));
  }
  const std::string dinov3 = R"("image_processor_type": "DINOv3ViTImageProcessor", )";
  for (const char* fields :
       {R"("do_resize": false)", R"("size": {"shortest_edge": 5})", R"("do_center_crop": true, "crop_size": 5)"}) {
    EXPECT_ERROR(processor_error(dinov3 + fields), "file: do_center_crop", "another geometry");
  }
}

TEST(ProcessorConfig, ValuesOutOfRangeNameTheirFields) {
  EXPECT_ERROR(processor_error(R"("image_std": [0.5, 0, 0.5])"), "file: image_std", "0.5,0,0.5");
  EXPECT_ERROR(processor_error(R"("image_mean": -1)"), "file: image_mean", "-1");
  EXPECT_ERROR(processor_error(R"("size": 0)"), "file: size", "0");
  EXPECT_ERROR(processor_error(R"("size": 8, "crop_size": 0)"), "file: crop_size", "0");
}

TEST(ProcessorConfig, IsWrittenWithTheseFields) {
  const auto written = [](const Preprocessing& from) { return Json::parse(write_preprocessor_config(from)).dump(); };
  Preprocessing from{.interpolation = "bicubic",
                     .mean = Numbers{0.5},
                     .std = Numbers{0.25},
                     .rule = ResizeRule::huggingface,
                     .resize_shortest = 40,
                     .center_crop = {{30, 20}},
                     .rescale_factor = 0.5};
  EXPECT_EQ(written(from),
            R"({"do_resize":true,"do_center_crop":true,"size":{"shortest_edge":40},)"
            R"("crop_size":{"height":30,"width":20},"resample":3,"do_rescale":true,"rescale_factor":0.5,)"
            R"("do_normalize":true,"image_mean":[0.5],"image_std":[0.25]})");
  from.resize_longest = 50;
  EXPECT_TRUE(testing::contains(written(from), R"("size":{"shortest_edge":40,"longest_edge":50})")) << written(from);
  from = {.interpolation = "lanczos",
          .rule = ResizeRule::huggingface,
          .resize_to = {{30, 20}},
          .rescale_factor = 1,
          .resize_floats = true};
  EXPECT_EQ(written(from),
            R"({"do_resize":true,"do_center_crop":false,"image_processor_type":"DINOv3ViTImageProcessor",)"
            R"("size":{"height":30,"width":20},"resample":1,"do_rescale":true,"rescale_factor":1.0,)"
            R"("do_normalize":true})");
  from = {.rule = ResizeRule::huggingface, .rescale_factor = 1};
  EXPECT_EQ(written(from), R"({"do_resize":false,"do_center_crop":false,"do_rescale":true,"rescale_factor":1.0,)"
                           R"("do_normalize":true})");
  const char* const filters[] = {"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"};
  for (int i = 0; i < 6; ++i) {
    from.interpolation = filters[i];
    EXPECT_EQ(Json::parse(write_preprocessor_config(from))["resample"], i);
  }
  EXPECT_TRUE(write_preprocessor_config(from).ends_with("}\n"));
}

}  // namespace
}  // namespace vitrail::models
