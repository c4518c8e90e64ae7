// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/unsupported_families_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail::models {
namespace {

struct Family {
  const char* prefix;  // names in timm and transformers begin with it; with "_" in front, they contain it
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
    {"sam", "a Segment Anything Model", kSegment},
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
    // Other tasks and videos
    {"detr", "a DETR detector"},
    {"yolos", "a YOLOS detector"},
    {"dpt", "a DPT depth estimator"},
    {"videomae", "a VideoMAE"},
    {"vivit", "a ViViT"},
    {"timesformer", "a TimeSformer"},
    {"vjepa2", "a V-JEPA 2"},
    {"blip", "a BLIP"},
};

constexpr const char* kSupported =
    "a plain Vision Transformer: ViT, DeiT, MAE, MSN, I-JEPA, DINOv2, DINOv3, CLIP, SigLIP, BEiT, data2vec, EVA, "
    "AIMv2, Perception Encoder";

}  // namespace

void refuse_unsupported_family(const std::string& name, const std::string& where) {
  const auto family = std::ranges::find_if(kFamilies, [&](const Family& f) {
    return name.starts_with(f.prefix) || (f.prefix[0] == '_' && name.find(f.prefix) != std::string::npos);
  });
  if (family == std::end(kFamilies)) return;
  throw Error(where, kSupported, "\"" + name + "\": " + family->title + family->instead);
}

}  // namespace vitrail::models
