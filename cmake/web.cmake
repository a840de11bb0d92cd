# The dashboard in the program: the files of web/ as they are, compressed, in tables of C (docs/decisions/0130-dashboard-files.md). No bundler
# and no npm: whoever changes a file builds, or serves the folder itself (the setting "web").
#
# Sorted, because the version of the files is a digest over all of them in this order. Names are put into C as they are.
set(web_root ${PROJECT_SOURCE_DIR}/web)
set(web_types html js mjs css svg png ico woff2 json webmanifest)
list(TRANSFORM web_types PREPEND "${web_root}/dashboard/*." OUTPUT_VARIABLE web_patterns)
file(GLOB_RECURSE web_found CONFIGURE_DEPENDS ${web_patterns})
file(GLOB web_module CONFIGURE_DEPENDS ${web_root}/weft/*.js)
list(APPEND web_found ${web_module})
list(FILTER web_found EXCLUDE REGEX "/node_modules/")
list(SORT web_found)
set(web_names "")
foreach(file ${web_found})
  file(RELATIVE_PATH name ${web_root} ${file})
  if(NOT name MATCHES "^[A-Za-z0-9._/-]+$")
    message(FATAL_ERROR "web/${name}: a file of the dashboard has letters, digits, dots, dashes and underscores in its name")
  endif()
  list(APPEND web_names ${name})
endforeach()

# The build runs it, also where programs with a sanitizer do not.
add_executable(embed_web tools/embed_web.c)
target_link_libraries(embed_web PRIVATE PkgConfig::ZLIB PkgConfig::SSL)
if(WEFT_SANITIZE)
  target_compile_options(embed_web PRIVATE -fno-sanitize=all)
  target_link_options(embed_web PRIVATE -fno-sanitize=all)
endif()
set_target_properties(embed_web PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tools-built)

set(web_source ${CMAKE_BINARY_DIR}/web/web_files.c)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/web)
add_custom_command(OUTPUT ${web_source} COMMAND embed_web ${web_source} ${web_root} ${web_names} DEPENDS embed_web ${web_found}
                   COMMENT "Embedding the dashboard" VERBATIM)
target_sources(weft_app PRIVATE ${web_source})
