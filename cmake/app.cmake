# src/app/*.c is the program, build/weft. It may include what every layer declares.
file(GLOB sources CONFIGURE_DEPENDS src/app/*.c)
if(sources)
  add_executable(weft ${sources})
  target_include_directories(weft PRIVATE src/app)
  target_link_libraries(weft PRIVATE weft_internal weft_program libweft PkgConfig::UV PkgConfig::SSL m)
endif()
