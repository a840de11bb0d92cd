# Every bench/NAME.c becomes build/bench/NAME; bench/run runs them. Some measure layers, so they may see everything.
file(GLOB sources CONFIGURE_DEPENDS bench/*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(bench_${name} ${source})
  target_link_libraries(bench_${name} PRIVATE weft_internal libweft PkgConfig::UV m)
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endforeach()
