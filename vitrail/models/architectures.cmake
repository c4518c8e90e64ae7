# SPDX-License-Identifier: Apache-2.0
# The files of architectures/, in the order in which `vitrail models` lists them.
vitrail_embed_json(builtin_architectures vitrail::models vitrail/models/builtin_architectures_internal.h
  models/architectures
  vit deit dinov2 clip siglip siglip_gap beit aimv2 eva timm tutorials)
vitrail_embed_json(unsupported_family_files vitrail::models vitrail/models/unsupported_families_internal.h
  models/families unsupported)
vitrail_embed_json(open_clip_models vitrail::models vitrail/models/config_formats_internal.h models/families
  open_clip_models)
