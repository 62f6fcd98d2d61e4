// The page of the settings.

import "./app.js";
import "../js/notifications.js";
import "../js/settings_list.js";
