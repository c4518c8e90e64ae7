// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/unsupported_families_internal.h"

#include <algorithm>
#include <string_view>

#include "vitrail/base/error.h"

namespace vitrail::models {
namespace {

struct Family {
  std::string_view prefix;  // names in timm and transformers begin with it; with "_" in front, they contain it
  const char* title;
  const char* instead = ", which is not supported";
};

constexpr const char* kSegment = ", which `vitrail segment` and sam::Predictor run";

// The first prefix applies.
constexpr Family kFamilies[] = {
    // Windows, stages and other attention
    {"swinv2", "a Swin Transformer V2"},
    {"swin2sr", "a Swin2SR"},
    {"swin", "a Swin Transformer"},
    {"sam2", "a Segment Anything Model 2"},
    {"sam3", "a Segment Anything Model 3"},
    {"samvit", "a Segment Anything Model", kSegment},
    {"sam", "a Segment Anything Model", kSegment},
    {"edgetam", "an EdgeTAM"},
    {"segment_anything", "a Segment Anything Model", kSegment},
    {"hiera", "a Hiera"},
    {"mvitv2", "an MViTv2"},
    {"pvt", "a Pyramid Vision Transformer"},
    {"segformer", "a SegFormer"},
    {"davit", "a DaViT"},
    {"gcvit", "a Global Context ViT"},
    {"dinat", "a Dilated Neighborhood Attention Transformer"},
    {"nest_", "a NesT"},
    {"twins", "a Twins"},
    {"cait", "a CaiT"},
    {"xcit", "an XCiT"},
    {"volo", "a VOLO"},
    {"tnt_", "a Transformer in Transformer"},
    {"crossvit", "a CrossViT"},
    {"pit_", "a Pooling-based Vision Transformer"},
    {"vit_relpos", "a ViT of timm with relative positions"},
    {"vit_srelpos", "a ViT of timm with relative positions"},
    {"vit_dwee", "a ViT with differential attention"},
    {"vit_dpwee", "a ViT with differential attention"},
    {"vit_dlittle", "a ViT with differential attention"},
    {"vit_pwee", "a ViT with attention and MLP in parallel"},
    {"_xp_", "a ViT with attention and MLP in parallel"},
    {"_18x2_", "a ViT with parallel blocks"},
    {"_sapiens2", "a Sapiens 2 with grouped queries"},
    {"sapiens2", "a Sapiens 2 with grouped queries"},
    {"vit_hybrid", "a ViT behind convolutions"},
    {"_r50_s16", "a ViT behind convolutions"},
    {"_r26_s32", "a ViT behind convolutions"},
    {"_r_s16_p8", "a ViT behind convolutions"},
    {"vitdet", "a ViTDet detector"},
    {"vitpose", "a ViTPose"},
    {"vitmatte", "a ViTMatte"},
    {"mlcd", "an MLCD"},
    {"pixio", "a Pixio"},
    {"radio", "a RADIO of transformers"},
    // Images of any aspect ratio
    {"naflexvit", "a NaFlex ViT"},
    {"siglip2", "a SigLIP 2 NaFlex model"},
    // Convolutions beside attention
    {"levit", "a LeViT"},
    {"mobilevit", "a MobileViT"},
    {"fastvit", "a FastViT"},
    {"vitamin", "a ViTamin"},
    {"efficientvit", "an EfficientViT"},
    {"efficientformer", "an EfficientFormer"},
    {"coatnet", "a CoAtNet"},
    {"coat_", "a CoaT"},
    {"convit", "a ConViT"},
    {"cvt", "a CvT"},
    {"maxvit", "a MaxViT"},
    {"maxxvit", "a MaxViT"},
    {"tiny_vit", "a TinyViT"},
    {"nextvit", "a Next-ViT"},
    {"repvit", "a RepViT"},
    {"visformer", "a Visformer"},
    {"swiftformer", "a SwiftFormer"},
    {"edgenext", "an EdgeNeXt"},
    // No attention
    {"dinov3_convnext", "a DINOv3 ConvNeXt"},
    {"convnext", "a ConvNeXt"},
    {"resnext", "a ResNeXt"},
    {"resnet", "a ResNet"},
    {"regnet", "a RegNet"},
    {"nfnet", "an NFNet"},
    {"hrnet", "an HRNet"},
    {"ghostnet", "a GhostNet"},
    {"xception", "an Xception network"},
    {"mobileone", "a MobileOne"},
    {"repvgg", "a RepVGG"},
    {"mambaout", "a MambaOut"},
    {"gmlp", "a gMLP"},
    {"resmlp", "a ResMLP"},
    {"densenet", "a DenseNet"},
    {"efficientnet", "an EfficientNet"},
    {"tf_efficientnet", "an EfficientNet"},
    {"mobilenet", "a MobileNet"},
    {"inception", "an Inception network"},
    {"vgg", "a VGG"},
    {"poolformer", "a PoolFormer"},
    {"caformer", "a CAFormer"},
    {"focalnet", "a FocalNet"},
    {"mixer", "an MLP-Mixer"},
    // Image and text
    {"chinese_clip", "a Chinese CLIP"},
    {"altclip", "an AltCLIP"},
    {"x_clip", "an X-CLIP"},
    {"xclip", "an X-CLIP"},
    {"clipseg", "a CLIPSeg"},
    {"groupvit", "a GroupViT"},
    {"owlvit", "an OWL-ViT detector"},
    {"owlv2", "an OWLv2 detector"},
    {"blip", "a BLIP"},
    {"instructblip", "an InstructBLIP"},
    {"flava", "a FLAVA"},
    {"vilt", "a ViLT"},
    {"bridgetower", "a BridgeTower"},
    {"vision-text-dual-encoder", "a pair of towers of other models"},
    {"llava", "a vision-language model"},
    {"vipllava", "a vision-language model"},
    {"internvl", "a vision-language model"},
    {"paligemma", "a vision-language model"},
    {"qwen2_vl", "a vision-language model"},
    {"qwen2_5_vl", "a vision-language model"},
    {"qwen3_vl", "a vision-language model"},
    {"idefics", "a vision-language model"},
    {"florence2", "a vision-language model"},
    {"git", "a vision-language model"},
    {"kosmos", "a vision-language model"},
    {"trocr", "a TrOCR"},
    {"vision-encoder-decoder", "an image model with a text decoder"},
    // Other tasks and videos
    {"detr", "a DETR detector"},
    {"conditional_detr", "a DETR detector"},
    {"deformable_detr", "a DETR detector"},
    {"dab-detr", "a DETR detector"},
    {"rt_detr", "a DETR detector"},
    {"rf_detr", "a DETR detector"},
    {"lw_detr", "a DETR detector"},
    {"grounding-dino", "a Grounding DINO detector"},
    {"mask2former", "a Mask2Former"},
    {"maskformer", "a MaskFormer"},
    {"oneformer", "a OneFormer"},
    {"eomt", "an EoMT"},
    {"upernet", "an UPerNet"},
    {"seggpt", "a SegGPT"},
    {"depth_anything", "a Depth Anything depth estimator"},
    {"prompt_depth_anything", "a Depth Anything depth estimator"},
    {"depth_pro", "a Depth Pro depth estimator"},
    {"zoedepth", "a ZoeDepth depth estimator"},
    {"glpn", "a GLPN depth estimator"},
    {"imagegpt", "an ImageGPT"},
    {"yolos", "a YOLOS detector"},
    {"dpt", "a DPT depth estimator"},
    {"videomae", "a VideoMAE"},
    {"vivit", "a ViViT"},
    {"timesformer", "a TimeSformer"},
    {"vjepa2", "a V-JEPA 2"},
};

constexpr const char* kSupported =
    "a plain Vision Transformer: ViT, DeiT, MAE, MSN, I-JEPA, DINOv2, DINOv3, CLIP, SigLIP, BEiT, data2vec, EVA, "
    "AIMv2, Perception Encoder";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Short prefixes are also the beginnings of other words ("samples"): at most a letter follows them ("xcit", "pvtv2").
bool begins_with(std::string_view name, std::string_view prefix) {
  constexpr size_t kShort = 4;
  if (!name.starts_with(prefix)) return false;
  const std::string_view tail = name.substr(prefix.size());
  return prefix.size() > kShort || tail.size() < 2 || !is_letter(tail[0]) || !is_letter(tail[1]);
}

bool is_named(std::string_view name, const Family& family) {
  if (family.prefix.front() == '_') return name.find(family.prefix) != name.npos;
  return begins_with(name, family.prefix);
}

}  // namespace

std::string describe_unsupported_family(const std::string& name) {
  const auto family = std::ranges::find_if(kFamilies, [&](const Family& f) { return is_named(name, f); });
  return family == std::end(kFamilies) ? "" : std::string(family->title) + family->instead;
}

void refuse_unsupported_family(const std::string& name, const std::string& where) {
  const std::string family = describe_unsupported_family(name);
  if (!family.empty()) throw Error(where, kSupported, "\"" + name + "\": " + family);
}

}  // namespace vitrail::models
