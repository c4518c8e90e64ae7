# SPDX-License-Identifier: Apache-2.0
# Embeds key_maps/*.json as string literals: the generated source defines builtin_key_maps() in the order of this list,
# which is the order of detection (a family whose keys include those of another comes first).
set(VITRAIL_KEY_MAPS
  dino_hub dinov3_hub dinov2_hub_registers dinov2_hub timm_beit timm_aimv2 mae ibot deit3 timm_eva masked_image_model
  timm huggingface_dinov3_gated huggingface_dinov3
  huggingface_dinov2_registers huggingface_dinov2
  huggingface_beit huggingface_aimv2 huggingface_siglip_classifier huggingface_siglip
  huggingface_deit_teacher huggingface_deit huggingface_vit
  huggingface_clip_classifier huggingface_clip huggingface_text
  mmpretrain open_clip open_clip_fc_norm open_clip_timm open_clip_text
  torchvision google document_000 document_003 document_004 torch_encoder
  vit_pytorch vit_pytorch_fn vit_pytorch_plain sam huggingface_sam)

set(key_maps_source ${CMAKE_CURRENT_BINARY_DIR}/builtin_key_maps.cpp)
set(key_maps_table "")
foreach(name ${VITRAIL_KEY_MAPS})
  set(file ${CMAKE_CURRENT_SOURCE_DIR}/weights/key_maps/${name}.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  string(APPEND key_maps_table "    {\"${name}\", R\"vitrail(${text})vitrail\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${key_maps_source} @ONLY CONTENT [[
// Generated from vitrail/weights/key_maps/*.json by key_maps.cmake.
#include "vitrail/weights/builtin_key_maps_internal.h"

namespace vitrail::weights {
namespace {
constexpr BuiltinKeyMap kMaps[] = {
@key_maps_table@};
}  // namespace
std::span<const BuiltinKeyMap> builtin_key_maps() { return kMaps; }
}  // namespace vitrail::weights
]])
target_sources(vitrail_lib PRIVATE ${key_maps_source})
