# SPDX-License-Identifier: Apache-2.0
# With CMAKE_UNITY_BUILD, as in most presets, several files of a target are compiled together, which takes less than
# half the time.  The files below are compiled alone: another file of their folder has one of their names in its
# anonymous namespace, too.  A file that compiles alone, but not in unity_N_cxx.cxx, belongs here.
function(compile_alone directory)
  foreach(file ${ARGN})
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/${directory}/${file}.cpp DIRECTORY ${PROJECT_SOURCE_DIR}/${directory}
                 PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
endfunction()

compile_alone(vitrail analysis/pca base/inflate base/read_file base/tar base/temporary_file
              data/auto_augment_torchvision data/loader_checks data/random_resized_crop data/split_choice
              data/tar_dataset data/unicode_names image/file_kind image/overlay image/png image/pnm image/tiff
              image/transform_geometry models/internvl_config models/preprocessing models/sam/image_encoder
              models/sam/prompt_encoder models/sam/tiny_vit models/sam/two_way_transformer models/siglip_config
              ops/recorder ops/residual_add ops/resize sam/prompt_file text/gemma_tokenizer text/siglip_tokenizer
              train/teacher_cache weights/rule_proposals weights/safetensors)
file(GLOB_RECURSE kernels CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/vitrail
     ${PROJECT_SOURCE_DIR}/vitrail/kernels/*.cpp)
list(TRANSFORM kernels REPLACE "[.]cpp$" "")
compile_alone(vitrail ${kernels})  # each is compiled once for each instruction set
if(VITRAIL_APP)
  compile_alone(apps/vitrail bench cache classify convert duplicates embed eval index inspect knn pca search serve
                train zeroshot)
endif()
if(VITRAIL_BENCHMARKS)
  compile_alone(benchmarks linear_benchmark)
endif()
if(VITRAIL_TESTS)
  set_target_properties(kernels_tests PROPERTIES UNITY_BUILD OFF)  # their tolerances have the same names
  compile_alone(tests apps/eval_test apps/inference_option_effects_test apps/model_option_effects_test
                apps/search_option_effects_test apps/search_test apps/segment_files_test
                apps/segment_option_effects_test apps/segment_tools_test apps/serve_option_effects_test
                apps/tool_option_effects_test apps/zeroshot_option_effects_test base/npy_test base/tar_test
                base/zip_test data/augment_edges_test data/multi_label_report_test dist/mpi_test hub/cached_models_test
                hub/file_list_test hub/pull_test infer/function_session_test infer/packed_weights_test
                infer/session_test infer/token_merging_test models/dinov3_config_test models/load_test
                models/preprocessing_test models/sam_load_test models/timm_config_test models/unsupported_families_test
                nn/patch_embed_test onnx/export_text_test optim/optimizer_test optim/schedule_test
                quantize/smoothing_test sam/everything_test sam/masks_test serve/inference_protocol_test
                serve/views_test tensor/view_test train/segment_step_test train/trainer_test weights/key_map_base_test
                weights/key_map_test weights/npy_test weights/pickle_test weights/torch_file_test
                weights/torch_values_test)
endif()
