// SPDX-License-Identifier: Apache-2.0
// Names of models of timm and transformers, and the family that each belongs to.
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/models/unsupported_families_internal.h"

namespace vitrail::models {
namespace {

TEST(UnsupportedFamilies, EachNameHasItsFamily) {
  const std::pair<const char*, const char*> families[] = {
      {"swinv2_base_window8_256", "a Swin Transformer V2"},
      {"swin2sr", "a Swin2SR"},
      {"swin_s3_tiny_224", "a Swin Transformer"},
      {"sam3_tracker", "a Segment Anything Model 3"},
      {"edgetam", "an EdgeTAM"},
      {"hiera_small_abswin_256", "a Hiera with absolute window positions"},
      {"mvitv2_tiny", "an MViTv2"},
      {"pvt_v2_b0", "a Pyramid Vision Transformer"},
      {"pvtv2", "a Pyramid Vision Transformer"},
      {"segformer", "a SegFormer"},
      {"davit_tiny", "a DaViT"},
      {"gcvit_tiny", "a Global Context ViT"},
      {"dinat", "a Dilated Neighborhood Attention Transformer"},
      {"nest_tiny", "a NesT"},
      {"twins_svt_small", "a Twins"},
      {"cait_s24_224", "a CaiT"},
      {"xcit_nano_12_p8_224", "an XCiT"},
      {"volo_d1_224", "a VOLO"},
      {"tnt_s_patch16_224", "a Transformer in Transformer"},
      {"crossvit_9_240", "a CrossViT"},
      {"pit_b_224", "a Pooling-based Vision Transformer"},
      {"vit_relpos_base_patch16_224", "a ViT of timm with relative positions"},
      {"vit_srelpos_small_patch16_224", "a ViT of timm with relative positions"},
      {"vit_dwee_patch16_reg1_gap_256", "a ViT with differential attention"},
      {"vit_dpwee_patch16_reg1_gap_256", "a ViT with differential attention"},
      {"vit_dlittle_patch16_reg1_gap_256", "a ViT with differential attention"},
      {"vit_pwee_patch16_reg1_gap_256", "a ViT with attention and MLP in parallel"},
      {"vit_base_patch32_xp_224", "a ViT with attention and MLP in parallel"},
      {"vit_base_patch16_18x2_224", "a ViT with parallel blocks"},
      {"vit_base_patch16_sapiens2", "a Sapiens 2 with grouped queries"},
      {"sapiens2", "a Sapiens 2 with grouped queries"},
      {"vit_hybrid", "a ViT behind convolutions"},
      {"vit_base_r50_s16_224", "a ViT behind convolutions"},
      {"vit_small_r26_s32_224", "a ViT behind convolutions"},
      {"vit_tiny_r_s16_p8_224", "a ViT behind convolutions"},
      {"vitdet", "a ViTDet detector"},
      {"mlcd_vision_model", "an MLCD"},
      {"pixio", "a Pixio"},
      {"radio", "a RADIO of transformers"},
      {"naflexvit_base_patch16_gap", "a NaFlex ViT"},
      {"siglip2_vision_model", "a SigLIP 2 NaFlex model"},
      {"levit_128s", "a LeViT"},
      {"mobilevitv2_050", "a MobileViT"},
      {"fastvit_t8", "a FastViT"},
      {"vitamin_small_224", "a ViTamin"},
      {"efficientvit_b0", "an EfficientViT"},
      {"efficientformerv2_s0", "an EfficientFormer"},
      {"coatnet_0_224", "a CoAtNet"},
      {"coat_tiny", "a CoaT"},
      {"convit_tiny", "a ConViT"},
      {"cvt", "a CvT"},
      {"maxvit_tiny_224", "a MaxViT"},
      {"maxxvit_rmlp_nano_256", "a MaxViT"},
      {"tiny_vit_5m_224", "a TinyViT"},
      {"nextvit_small", "a Next-ViT"},
      {"repvit_m1", "a RepViT"},
      {"visformer_tiny", "a Visformer"},
      {"swiftformer_xs", "a SwiftFormer"},
      {"edgenext_small", "an EdgeNeXt"},
      {"dinov3_convnext", "a DINOv3 ConvNeXt"},
      {"convnextv2_atto", "a ConvNeXt"},
      {"resnext50_32x4d", "a ResNeXt"},
      {"resnetv2_50", "a ResNet"},
      {"regnety_032", "a RegNet"},
      {"nfnet_f0", "an NFNet"},
      {"hrnet_w18", "an HRNet"},
      {"ghostnet_100", "a GhostNet"},
      {"xception41", "an Xception network"},
      {"mobileone_s0", "a MobileOne"},
      {"repvgg_a0", "a RepVGG"},
      {"mambaout_tiny", "a MambaOut"},
      {"gmlp_s16_224", "a gMLP"},
      {"resmlp_12_224", "a ResMLP"},
      {"densenet121", "a DenseNet"},
      {"efficientnet_b0", "an EfficientNet"},
      {"tf_efficientnet_b0", "an EfficientNet"},
      {"mobilenetv3_large_100", "a MobileNet"},
      {"inception_v4", "an Inception network"},
      {"vgg16", "a VGG"},
      {"poolformer_s12", "a PoolFormer"},
      {"caformer_s18", "a CAFormer"},
      {"focalnet_tiny_srf", "a FocalNet"},
      {"mixer_b16_224", "an MLP-Mixer"},
      {"chinese_clip", "a Chinese CLIP"},
      {"altclip", "an AltCLIP"},
      {"x_clip", "an X-CLIP"},
      {"xclip", "an X-CLIP"},
      {"groupvit", "a GroupViT"},
      {"blip-2", "a BLIP"},
      {"instructblip", "an InstructBLIP"},
      {"flava", "a FLAVA"},
      {"vilt", "a ViLT"},
      {"bridgetower", "a BridgeTower"},
      {"vision-text-dual-encoder", "a pair of towers of other models"},
      {"llava_next", "a vision-language model"},
      {"vipllava", "a vision-language model"},
      {"internvl", "a vision-language model"},
      {"paligemma", "a vision-language model"},
      {"qwen2_vl", "a vision-language model"},
      {"qwen2_5_vl", "a vision-language model"},
      {"qwen3_vl_moe", "a vision-language model"},
      {"idefics3", "a vision-language model"},
      {"florence2", "a vision-language model"},
      {"git", "a vision-language model"},
      {"kosmos-2", "a vision-language model"},
      {"trocr", "a TrOCR"},
      {"vision-encoder-decoder", "an image model with a text decoder"},
      {"detr", "a DETR detector"},
      {"conditional_detr", "a DETR detector"},
      {"deformable_detr", "a DETR detector"},
      {"dab-detr", "a DETR detector"},
      {"rt_detr_v2", "a DETR detector"},
      {"grounding-dino", "a Grounding DINO detector"},
      {"mask2former", "a Mask2Former"},
      {"maskformer", "a MaskFormer"},
      {"oneformer", "a OneFormer"},
      {"upernet", "an UPerNet"},
      {"seggpt", "a SegGPT"},
      {"prompt_depth_anything", "a Prompt Depth Anything depth estimator"},
      {"depth_pro", "a Depth Pro depth estimator"},
      {"zoedepth", "a ZoeDepth depth estimator"},
      {"glpn", "a GLPN depth estimator"},
      {"imagegpt", "an ImageGPT"},
      {"videomae", "a VideoMAE"},
      {"vivit", "a ViViT"},
      {"timesformer", "a TimeSformer"},
      {"vjepa2", "a V-JEPA 2"},
  };
  for (const auto& [name, family] : families) {
    EXPECT_EQ(describe_unsupported_family(name), std::string(family) + ", which is not supported") << name;
  }
  for (const char* name : {"hiera", "hiera_tiny_224"}) {
    EXPECT_EQ(describe_unsupported_family(name),
              "a Hiera, which `vitrail classify` and `vitrail embed` run from its files");
  }
  for (const char* name : {"sam2", "sam2_video", "sam2_hiera_tiny"}) {
    EXPECT_EQ(describe_unsupported_family(name),
              "a Segment Anything Model 2, which `vitrail segment` and sam::Predictor run")
        << name;
  }
  for (const char* name : {"samvit_base_patch16", "sam", "sam_hq", "segment_anything"}) {
    EXPECT_EQ(describe_unsupported_family(name),
              "a Segment Anything Model, which `vitrail segment` and sam::Predictor run")
        << name;
  }
  EXPECT_EQ(describe_unsupported_family("depth_anything"),
            "a Depth Anything depth estimator, which `vitrail depth` and the task depth run");
  EXPECT_EQ(describe_unsupported_family("eomt_dinov3"), "an EoMT, which `vitrail segment` and the task segment run");
  EXPECT_EQ(describe_unsupported_family("dpt"), "a DPT, which `vitrail depth` or `vitrail segment` runs, by its head");
  EXPECT_EQ(describe_unsupported_family("clipseg"), "a CLIPSeg, which `vitrail segment` and the task segment run");
  EXPECT_EQ(describe_unsupported_family("yolos"), "a YOLOS detector, which `vitrail detect` and the task detect run");
  EXPECT_EQ(describe_unsupported_family("rf_detr"),
            "an RF-DETR detector, which `vitrail detect` and the task detect run");
  EXPECT_EQ(describe_unsupported_family("lw_detr"),
            "an LW-DETR detector, which `vitrail detect` and the task detect run");
  EXPECT_EQ(describe_unsupported_family("vitpose_backbone"), "a ViTPose, which `vitrail pose` and the task pose run");
  EXPECT_EQ(describe_unsupported_family("owlv2"), "an OWLv2 detector, which `vitrail detect` and the task detect run");
  EXPECT_EQ(describe_unsupported_family("owlvit"),
            "an OWL-ViT detector, which `vitrail detect` and the task detect run");
  EXPECT_EQ(describe_unsupported_family("vitmatte"), "a ViTMatte, which `vitrail matte` and the task matte run");
}

// Supported models, other words with a short name's letters, and names that contain one.
TEST(UnsupportedFamilies, OtherNamesHaveNone) {
  for (const char* name : {"vit_base_patch16_224", "deit3_small_patch16_224", "beit_base_patch16_224", "dinov2", "clip",
                           "eva02_base_patch14_224", "aimv2_large_patch14_224", "samples", "gitter", "detrimental",
                           "digit", "dptune", "vggish", "my_swin", "", "s"}) {
    EXPECT_EQ(describe_unsupported_family(name), "") << name;
  }
  // At most one letter follows a short name.
  EXPECT_NE(describe_unsupported_family("dptx"), "");
  EXPECT_NE(describe_unsupported_family("dptx2"), "");
  EXPECT_EQ(describe_unsupported_family("dptxy"), "");
  EXPECT_EQ(describe_unsupported_family("dptXY"), "");
  EXPECT_NE(describe_unsupported_family("dpt2x"), "");
}

TEST(UnsupportedFamilies, AreRefusedWithWhatIsSupported) {
  EXPECT_ERROR(testing::error_of([] { refuse_unsupported_family("swin_tiny", "file"); }), "file",
               "\"swin_tiny\": a Swin Transformer, which is not supported");
  EXPECT_NO_THROW(refuse_unsupported_family("vit_base_patch16_224", "file"));
}

}  // namespace
}  // namespace vitrail::models
