# SPDX-License-Identifier: Apache-2.0
# The files of key_maps/ in the order of detection: a family whose keys include those of another comes first.
vitrail_embed_json(builtin_key_maps vitrail::weights vitrail/weights/builtin_key_maps_internal.h weights/key_maps
  ibot dino_hub dinov3_hub tips_hub dinov2_hub_registers dinov2_hub
  timm_beit timm_aimv2 mae moco_v3 msn deit3 timm_eva masked_image_model
  timm huggingface_dinov3_gated huggingface_dinov3
  huggingface_dinov2_registers huggingface_dinov2
  huggingface_internvl huggingface_beit huggingface_aimv2 huggingface_siglip_classifier huggingface_siglip
  huggingface_deit_teacher huggingface_deit huggingface_vit
  huggingface_clip_classifier huggingface_clip huggingface_text
  beit3 mmpretrain open_clip_coca open_clip open_clip_fc_norm open_clip_timm open_clip_text
  torchvision google document_000 document_003 document_004 torch_encoder
  vit_pytorch vit_pytorch_fn vit_pytorch_plain sam mobile_sam huggingface_sam sam2
  huggingface_sam2 sam_encoder timm_sam)
