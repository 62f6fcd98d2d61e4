// The page of a project.

import "./app.js";
import "../js/project_files.js";
